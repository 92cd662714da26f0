"""Calls with sizes that no memory could hold, for `test_bad_input`."""

import functools

import numpy as np
import tensorflow as tf

from blockcell import op_table
from blockcell.op_table import LENGTHS, OPS, SEQUENCES
from blockcell_tools.reference.inputs import TIME, inputs_of, shapes
from helpers import checks, kernels


def prepare():
    import blockcell

    blockcell.load()


def on(op):
    """The last of the op's sets of attributes: all vectors are used."""
    return op_table.switches(op)[-1]


@functools.lru_cache(maxsize=None)
def _session(op, dtype):
    """The op on zeros of shapes that are fed; its outputs' shapes."""
    with tf.Graph().as_default() as graph, kernels.labelled():
        feeds = {name: tf.compat.v1.placeholder(tf.int64) for name in OPS[op].inputs}
        length = tf.compat.v1.placeholder(tf.int64)
        inputs = {
            name: tf.fill(feed, length) if name in LENGTHS else tf.zeros(feed, dtype)
            for name, feed in feeds.items()
        }
        outputs = kernels.call(op, inputs, **on(op))
        fetches = {name: tf.shape(output, out_type=tf.int64) for name, output in outputs.items()}
    return tf.compat.v1.Session(graph=graph), feeds, length, fetches


def run_on_zeros(op, shapes, length=0, dtype=np.float32):
    """Runs our kernel on zeros of shapes that NumPy may not be able to make; returns the shapes."""
    session, feeds, feed, fetches = _session(op, dtype)
    fed = {feeds[name]: np.array(shape, np.int64) for name, shape in shapes.items()}
    got = session.run(fetches, {feed: length, **fed})
    return {name: shape.tolist() for name, shape in got.items()}


def assert_works(op):
    inputs = inputs_of(op, 3, 2, 4, **on(op))
    checks.assert_accurate(op, inputs, kernels.run(op, inputs, **on(op)), **on(op))


def _refused(op, shapes, words):
    try:
        run_on_zeros(op, shapes)
    except tf.errors.InvalidArgumentError as error:
        assert words in str(error), error
    else:
        raise AssertionError(f"{op} accepted {shapes}")
    assert_works(op)


def _shapes_are(op, got, batch, input_size, cell_size, time=TIME):
    sizes = dict(batch=batch, input_size=input_size, cell_size=cell_size, time=time)
    assert got == op_table.in_numbers(OPS[op].outputs, sizes), got
    assert_works(op)


def _one_huge_tensor(op):
    right = shapes(op, 3, 2, 4)
    for tensor, shape in right.items():
        huge = {0: [2**20], 1: [2**20]}.get(len(shape), [2**40] + [0] * (len(shape) - 1))
        _refused(op, dict(right, **{tensor: huge}), "must have shape")


def _huge_but_empty(op):
    for batch, input_size in ((2**40, 0), (0, 2**40)):
        if batch and "sequence_length" in OPS[op].inputs:
            continue  # Which would not be empty.
        got = run_on_zeros(op, shapes(op, batch, input_size, 0))
        _shapes_are(op, got, batch, input_size, 0)


def _overflow(op):
    # (2**62, 2**62) alone would be too much; the others contain a zero, but their bytes per row or
    # column do not fit either.
    for batch, input_size in ((2**62, 0), (0, 2**62)):
        if batch and "sequence_length" in OPS[op].inputs:
            continue
        _refused(op, shapes(op, batch, input_size, 0, 1), "too large")
    if op in SEQUENCES:
        _refused(op, shapes(op, 0, 3, 4, 2**62), "too large")


def _long_but_empty(op):
    """Times above 2**31, all of which take part, though there is nothing to compute.

    A kernel that looked at every step would run for hours, until `isolated` ends the process.
    """
    for dtype in OPS[op].dtypes:
        for sizes in ((0, 3, 4, 2**40), (0, 3, 4, 2**31 + 5), (3, 0, 0, 2**40), (3, 0, 0, 2**33)):
            got = run_on_zeros(op, shapes(op, *sizes), sizes[-1], dtype)
            _shapes_are(op, got, *sizes)


for _op in OPS:
    for _place in (_one_huge_tensor, _huge_but_empty, _overflow, _long_but_empty):
        globals()[f"{_place.__name__[1:]}_{_op}"] = functools.partial(_place, _op)
