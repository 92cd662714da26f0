"""Why a layer, or a call of one, runs on Keras's own path; None if it runs on the kernels.

A reason is a clause that can follow "because".
"""

from typing import Any, Optional

import tensorflow as tf

from blockcell import tf_internals
from blockcell.gradients import registry
from blockcell.keras import arguments, exports, functions, kinds, sequences

DTYPES = ("float32", "float16", "bfloat16")
"""The types in which the kernels compute."""
GPU = "there is a GPU, and Keras has a path for it"
FILE = "it is traced for a file, which must be loadable without blockcell"
JIT = "it is compiled by XLA (jit_compile=True)"


def of_layer(layer: Any) -> Optional[str]:
    """What in a layer's arguments, or in this process, keeps it from the kernels.

    Args:
      layer: A recurrent layer of Keras.
    """
    if tf.config.list_logical_devices("GPU"):
        return GPU
    kind = kinds.of(layer)
    if kind is None:
        return _of_another(layer)
    return (
        _of_cell(layer, kind)
        or _of_loop(layer)
        or arguments.unknown(layer)
        or _of_dtype(layer.compute_dtype)
        or _of_gradients(layer, kind)
    )


def _of_another(layer: Any) -> str:
    """Why a layer that is neither is not served."""
    cell = getattr(layer, "cell", None)
    if cell is None or not kinds.is_plain(layer):
        return f"the kernels support the layers LSTM and GRU, and it is a {type(layer).__name__}"
    return (
        "the kernels support the cells LSTMCell and GRUCell, and its cell is a "
        f"{type(cell).__name__}"
    )


def _of_cell(layer: Any, kind: str) -> Optional[str]:
    cell = layer.cell
    if not kinds.is_stock_cell(cell, kind):
        return f"its cell is a {type(cell).__name__}, not Keras's {kind}Cell"
    unknown = functions.unknown(cell)
    if unknown is not None:
        return unknown
    if kinds.is_plain(layer) and cell.compute_dtype != layer.compute_dtype:
        return f"it computes in {layer.compute_dtype}, and its cell in {cell.compute_dtype}"
    return None


def _of_loop(layer: Any) -> Optional[str]:
    if layer.unroll:
        return "unroll is True"
    # True asks for cuDNN's network, which has kernels on CPUs here.
    if getattr(layer, "use_cudnn", "auto") not in ("auto", True):
        return f"use_cudnn is {layer.use_cudnn}"
    if getattr(layer, "return_runtime", False) or getattr(layer, "_return_runtime", False):
        return "return_runtime is True"
    return None


def _of_gradients(layer: Any, kind: str) -> Optional[str]:
    is_stock = sequences.runs_on_tensorflows_op(functions.of(layer.cell), layer.compute_dtype)
    if kind == kinds.LSTM and is_stock and not registry.has("BlockLSTMV2"):
        return "TensorFlow's gradient of BlockLSTMV2, which is wrong, could not be replaced"
    return None


def _of_dtype(dtype: str) -> Optional[str]:
    if dtype in DTYPES:
        return None
    return f"it computes in {dtype}, and the kernels in {', '.join(DTYPES)}"


def of_training(layer: Any) -> Optional[str]:
    """What in the arguments of a layer keeps its training from the kernels, but not inference.

    Args:
      layer: A layer of which `of_layer` says nothing.
    """
    cell = layer.cell
    if cell.recurrent_dropout:
        return f"recurrent_dropout is {cell.recurrent_dropout:g}"
    if cell.dropout and getattr(cell, "implementation", 2) == 1:
        return "implementation=1 has a dropout mask for each gate"
    return None


def of_call(layer: Any, x: Any, infers: bool) -> Optional[str]:
    """What in a call keeps it from the kernels, but for shapes: `shapes.unusual` says those.

    Args:
      layer: The layer.
      x: Its inputs.
      infers: Whether it is known not to train.
    """
    if compiled_by_xla():
        return JIT
    if exports.traced_for_a_file():
        return FILE
    if isinstance(x, tf.RaggedTensor):
        return "its inputs are ragged"
    if tf.as_dtype(x.dtype).name != layer.compute_dtype:
        return (
            f"its inputs are {tf.as_dtype(x.dtype).name}, and it computes in {layer.compute_dtype}"
        )
    return None if infers else of_training(layer)


def compiled_by_xla() -> bool:
    """Whether the function that is being traced, or one around it, is compiled by XLA."""
    if tf.executing_eagerly():
        return False
    return bool(tf_internals.in_xla_context(tf.compat.v1.get_default_graph()))
