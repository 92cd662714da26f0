"""Levels of precision, for `test_precision`."""

import numpy as np
import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell_tools import labelled_calls
from blockcell_tools.reference.inputs import accuracy, inputs_of

SIZES = dict(time=12, batch=9, input_size=40, cell_size=65)
OPS = ("BlockLSTMV2", "BlockLSTMGradV2", "BlockGRU", "BlockGRUGrad", "GRUBlockCell")


def by_default():
    return blockcell.get_float32_matmul_precision()


def chosen():
    """What is told after each choice, and what runs."""
    found = []
    for level in ("medium", "high", "highest"):
        blockcell.set_float32_matmul_precision(level)
        info = blockcell.info()
        keys = ("isa", "float32_matmul_precision", "float32_matmul_runs")
        found.append([blockcell.get_float32_matmul_precision(), *(info[key] for key in keys)])
    return found


def refused():
    blockcell.set_float32_matmul_precision("medium")
    try:
        blockcell.set_float32_matmul_precision("low")
    except ValueError as error:
        return [str(error), blockcell.get_float32_matmul_precision()]


def errors():
    """For each op the worst errors at each level, and whether its results differ between them."""
    found = {}
    for op in OPS:
        on = {op_table.OPS[op].switch: False} if op_table.OPS[op].switch else {}
        inputs = inputs_of(op, **SIZES, dtype=np.float32, seed=1, **on)
        results = {}
        for level in ("highest", "high", "medium"):
            blockcell.set_float32_matmul_precision(level)
            results[level] = labelled_calls.run(op, inputs, labelled_calls.OURS, **on)
        worst = {
            level: max(one.error for one in accuracy(op, inputs, got, most=1.0, **on))
            for level, got in results.items()
        }
        same = {
            level: all(np.array_equal(got[name], results["highest"][name]) for name in got)
            for level, got in results.items()
        }
        found[op] = [worst, same]
    return found


def counted():
    """Which ops had factors in bfloat16, of a sequence of one row and large weights, and a step."""
    blockcell.load()
    blockcell.set_float32_matmul_precision("medium")
    for op in ("BlockLSTMV2", "GRUBlockCell"):
        inputs = inputs_of(op, **dict(SIZES, batch=1, cell_size=345), dtype=np.float32, seed=1)
        labelled_calls.run(op, inputs, labelled_calls.OURS)
    return [op for op, count in blockcell.info()["runs_in_bfloat16"].items() if count]


def of_a_node():
    """A node's attribute decides for it alone; one that is no level is refused."""
    blockcell.load()
    blockcell.set_float32_matmul_precision("highest")
    inputs = inputs_of("BlockLSTMV2", **SIZES, dtype=np.float32, seed=1)
    results = []
    for level in (None, "medium", "low"):
        with tf.Graph().as_default() as graph:
            feeds = {name: tf.constant(value) for name, value in inputs.items()}
            h = tf.raw_ops.BlockLSTMV2(**feeds).h
            if level:
                value = tf.compat.v1.AttrValue(s=level.encode())
                h.op._set_attr("_blockcell_precision", value)
            with tf.compat.v1.Session(graph=graph) as session:
                try:
                    results.append(session.run(h))
                except tf.errors.InvalidArgumentError as error:
                    results.append(str(error))
    return [not np.array_equal(*results[:2]), results[2]]
