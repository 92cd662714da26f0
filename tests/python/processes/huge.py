"""Calls with sizes that no memory could hold, for `test_bad_input`."""

import tensorflow as tf

import cases
import kernels
from cases import GRU, LSTM

ATTRIBUTES = {GRU: {}, LSTM: {"use_peephole": True}}


def prepare():
    import blockcell

    blockcell.load()


def run_on_zeros(op, shapes):
    """Runs our kernel on zeros of shapes that NumPy may not be able to make; returns the shapes."""
    with tf.Graph().as_default() as graph, graph._kernel_label_map({op: kernels.OURS}):
        feeds = {name: tf.compat.v1.placeholder(tf.int64) for name in shapes}
        inputs = {name: tf.zeros(feed) for name, feed in feeds.items()}
        outputs = getattr(tf.raw_ops, op)(**inputs, **ATTRIBUTES[op])._asdict()
        fetches = {name: tf.shape(output, out_type=tf.int64) for name, output in outputs.items()}
        with tf.compat.v1.Session(graph=graph) as session:
            got = session.run(fetches, {feeds[name]: shapes[name] for name in shapes})
    return {name: shape.tolist() for name, shape in got.items()}


def assert_works(op):
    inputs = cases.grad_inputs(op, 3, 2, 4, **ATTRIBUTES[op])
    got = kernels.run(op, inputs, **ATTRIBUTES[op])
    cases.assert_close(got, cases.expected(op, inputs, **ATTRIBUTES[op]), 1e-6)


def _refused(op, shapes, words):
    try:
        run_on_zeros(op, shapes)
    except tf.errors.InvalidArgumentError as error:
        assert words in str(error)
    else:
        raise AssertionError(f"{op} accepted {shapes}")
    assert_works(op)


def _one_huge_tensor(op):
    for tensor, right in cases.shapes(op, 3, 2, 4).items():
        shapes = dict(cases.shapes(op, 3, 2, 4))
        shapes[tensor] = [2**40, 0] if len(right) == 2 else [2**20]
        _refused(op, shapes, "must have shape")


def _huge_but_empty(op):
    for batch, input_size in ((2**40, 0), (0, 2**40)):
        got = run_on_zeros(op, cases.shapes(op, batch, input_size, 0))
        assert got[next(iter(got))] == [batch, input_size if op == GRU else 0]
        assert_works(op)


def _overflow(op):
    # (2**62, 2**62) alone would be too much; the others contain a zero, but their bytes per row or
    # column do not fit either.
    for batch, input_size in ((2**62, 0), (0, 2**62)):
        _refused(op, cases.shapes(op, batch, input_size, 0), "too large")


def gru_one_huge_tensor():
    _one_huge_tensor(GRU)


def lstm_one_huge_tensor():
    _one_huge_tensor(LSTM)


def gru_huge_but_empty():
    _huge_but_empty(GRU)


def lstm_huge_but_empty():
    _huge_but_empty(LSTM)


def gru_overflow():
    _overflow(GRU)


def lstm_overflow():
    _overflow(LSTM)
