"""The table of the ops against what TensorFlow and the library have registered."""

import numpy as np
import pytest
import tensorflow as tf

import blockcell
from blockcell import op_table
from blockcell.op_table import CUDNN, LENGTH, OPS, STOCK
from blockcell_tools.reference import oracle
from helpers import kernels


def registered(op, dtype=np.float32):
    """The op's definition: of a node made from tensors of the types that the table says."""
    with tf.Graph().as_default() as graph:
        tensors = {
            name: tf.compat.v1.placeholder(np.int64 if tensor.kind == LENGTH else dtype)
            for name, tensor in OPS[op].inputs.items()
        }
        switch = OPS[op].switch
        kernels.call(op, tensors, **({switch: True} if switch else {}))
        return graph.get_operations()[-1].op_def


def test_all_ops_of_the_library_are_in_it():
    assert sorted([*OPS, *CUDNN]) == sorted(blockcell.info()["ops"])
    assert all(hasattr(tf.raw_ops, op) for op in CUDNN)
    assert all(hasattr(tf.raw_ops, op) == (op in STOCK) for op in OPS)
    assert sorted(oracle.FUNCTIONS) == sorted(OPS)


@pytest.mark.parametrize("op", OPS)
def test_names_and_order(op):
    definition = registered(op)
    assert definition.name == op
    assert [argument.name for argument in definition.input_arg] == list(OPS[op].inputs)
    assert [argument.name for argument in definition.output_arg] == list(OPS[op].outputs)
    attributes = {attribute.name for attribute in definition.attr} - {"T"}
    assert attributes == set(OPS[op].attributes)


@pytest.mark.parametrize("op", OPS)
def test_types(op):
    definition = registered(op)
    for arguments, tensors in (
        (definition.input_arg, OPS[op].inputs),
        (definition.output_arg, OPS[op].outputs),
    ):
        for argument in arguments:
            is_length = tensors[argument.name].kind == LENGTH
            assert argument.type == (tf.int64.as_datatype_enum if is_length else 0)
            assert argument.type_attr == ("" if is_length else "T")
    allowed = next(each for each in definition.attr if each.name == "T").allowed_values.list.type
    assert set(allowed) == {tf.as_dtype(name).as_datatype_enum for name in OPS[op].types}
    dtypes = {tf.as_dtype(dtype).as_datatype_enum for dtype in OPS[op].dtypes}
    lacks = set() if op_table.BFLOAT16 else {tf.bfloat16.as_datatype_enum}
    assert dtypes == set(allowed) - lacks


@pytest.mark.parametrize("op", op_table.GRADIENTS)
def test_gradient_ops_take_what_their_forward_op_has(op):
    """Its inputs, some of its outputs, and gradients of outputs."""
    forward = OPS[OPS[op].forward]
    names = list(OPS[op].inputs)
    assert names[: len(forward.inputs)] == list(forward.inputs)
    rest = names[len(forward.inputs) :]
    incoming = op_table.incoming(op)
    assert [name for name in rest if name not in incoming] == [
        name for name in forward.outputs if name in rest
    ]
    assert set(incoming.values()) <= set(forward.outputs)


def test_symbolic_dimensions():
    sizes = {"batch": 3, "cell_size": 5, "input_size": 7}
    assert op_table.size_of("input_size + cell_size", sizes) == 12
    assert op_table.size_of("4 * cell_size", sizes) == 20
    with pytest.raises(KeyError):
        op_table.size_of("time * batch", sizes)
