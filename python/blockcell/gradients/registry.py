"""Puts the gradients into TensorFlow."""

import contextlib
import functools
import importlib

import tensorflow as tf

from blockcell.gradients import block_gru, block_lstm, gru, lstm


def register(module, replace):
    """Registers the gradients of the family, for eager tapes, functions and graphs alike.

    The gradient of a gradient op goes in together with that of its op only: where another one
    stays, it might drop gradients that arrive at the saved activations, and second derivatives
    would be wrong without a word.

    Args:
      module: The library's ops, as `tf.load_op_library` returns them.
      replace: Whether to replace gradients that are registered already.

    Raises:
      RuntimeError: Gradients have to be replaced, and this TensorFlow keeps them in an unknown way.
    """
    if tf.__version__.startswith("1."):
        _import_contrib_gradients()
    for op, gradient, grad_op, gradient_of_gradient in _gradients(module):
        if _put(op, gradient, replace):
            _put(grad_op, gradient_of_gradient, replace)


@functools.lru_cache(maxsize=None)
def _gradients(module):
    """Each op, its gradient, its gradient op, and that one's gradient."""
    return (
        (
            "GRUBlockCell",
            gru.gru_block_cell_gradient,
            "GRUBlockCellGrad",
            gru.gru_block_cell_grad_gradient,
        ),
        (
            "LSTMBlockCell",
            lstm.lstm_block_cell_gradient,
            "LSTMBlockCellGrad",
            lstm.lstm_block_cell_grad_gradient,
        ),
        (
            "BlockLSTM",
            block_lstm.block_lstm_gradient,
            "BlockLSTMGrad",
            block_lstm.block_lstm_grad_gradient,
        ),
        (
            "BlockLSTMV2",
            block_lstm.block_lstm_v2_gradient,
            "BlockLSTMGradV2",
            block_lstm.block_lstm_grad_v2_gradient,
        ),
        (
            "BlockGRU",
            functools.partial(block_gru.block_gru_gradient, module),
            "BlockGRUGrad",
            block_gru.block_gru_grad_gradient,
        ),
    )


def _put(op, gradient, replace):
    """Registers one gradient, and returns whether it is registered then.

    TensorFlow can register a gradient, but not replace one. So it is registered under another name,
    and then moved, in one step for whoever looks gradients up meanwhile.
    """
    entries = _entries()
    if op in entries:
        registered = _registry().lookup(op)
        if registered is gradient or not replace:
            return registered is gradient
    another_name = "Blockcell" + op
    tf.RegisterGradient(another_name)(gradient)
    entries[op] = entries.pop(another_name)
    return True


def _registry():
    """Where TensorFlow looks up gradients: private, but the same from 1.15 to 2.21."""
    from tensorflow.python.framework import ops

    return ops._gradient_registry


def _entries():
    try:
        return _registry()._registry
    except AttributeError as error:
        raise RuntimeError(
            f"blockcell: TensorFlow {tf.__version__} keeps gradients in a way that is not known"
        ) from error


def _import_contrib_gradients():
    """Lets tf.contrib register its gradients of the two cells.

    tf.contrib is imported on first use, and would then fail on finding the names taken.
    """
    for module in ("gru_ops", "lstm_ops"):
        with contextlib.suppress(ImportError):  # A TensorFlow built without contrib.
            importlib.import_module("tensorflow.contrib.rnn.python.ops." + module)
