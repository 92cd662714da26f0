"""Every private interface of TensorFlow and Keras that the package uses.

Each has a function here, which says in which releases it was seen and what is off without it. Where
a release does not have it, the function logs a warning that names it, once, and returns what lets
its callers do without. Nothing else depends on it.
"""

import contextlib
import functools
import importlib
import logging
from typing import Any, Callable, ContextManager, Dict, List, NamedTuple, Optional, Set


class Interface(NamedTuple):
    """A private interface."""

    name: str
    seen: str
    """The releases that were seen to have it."""
    without: str
    """What is off without it, a clause."""


class MissingInterfaceError(RuntimeError):
    """What was asked for cannot be done without a private interface that is not there."""


INTERFACES: Dict[str, Interface] = {}
"""By the name of the function here that uses it."""
WARNING = "There is no private interface"
"""How each warning begins."""
_warned: Set[str] = set()


def _uses(name: str, seen: str, without: str, otherwise: Any = None) -> Callable[..., Any]:
    """Marks a function that uses an `Interface`, whose fields these are.

    Without it, the function returns `otherwise`, or what that makes; or it raises
    `MissingInterfaceError`, if `otherwise` is that.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        INTERFACES[function.__name__] = Interface(name, seen, without)

        @functools.wraps(function)
        def guarded(*args: Any) -> Any:
            try:
                return function(*args)
            except (ImportError, AttributeError, TypeError) as error:  # Or with other arguments.
                if otherwise is MissingInterfaceError:
                    raise MissingInterfaceError(_message(function.__name__, error)) from error
                if function.__name__ not in _warned:
                    _warned.add(function.__name__)
                    message = _message(function.__name__, error)
                    logging.getLogger("blockcell").warning("%s", message)
                return otherwise() if callable(otherwise) else otherwise

        return guarded

    return decorate


def _message(key: str, error: Exception) -> str:
    name, seen, without = INTERFACES[key]
    return f"{WARNING} {name} (seen in {seen}): {without}. [{error}]"


def _of(owner: Any, name: str) -> Any:
    """An attribute of an object, or of the module of that name."""
    return getattr(importlib.import_module(owner) if isinstance(owner, str) else owner, name)


# Of TensorFlow.


@_uses(
    "tensorflow.python.eager.context.context().clear_kernel_cache",
    "TensorFlow 2.4 to 2.21",
    "ops that ran eagerly before blockcell.load() may keep TensorFlow's kernels",
)
def drop_eager_kernels() -> None:
    """Drops the kernels that eager mode has cached, if it has run at all."""
    context = _of("tensorflow.python.eager.context", "context")()
    handle = _of(context, "_context_handle")
    if handle is None:
        return  # Nothing has run. Some releases, such as 2.5, do not clear what is not there.
    if hasattr(context, "clear_kernel_cache"):
        context.clear_kernel_cache()
    else:  # Releases of about 2.4.
        _of("tensorflow.python.pywrap_tfe", "TFE_ContextClearCaches")(handle)


@_uses(
    "tensorflow.python.framework.ops._gradient_registry._registry",
    "TensorFlow 1.15 to 2.21",
    "TensorFlow's gradients are not replaced, and those of sequences are wrong",
)
def gradient_registry() -> Any:
    """Where TensorFlow looks up gradients: an object whose `_registry` is a dictionary by op."""
    registry = _of("tensorflow.python.framework.ops", "_gradient_registry")
    _of(registry, "_registry")
    return registry


@_uses(
    "TFE_Py_TapeSetPossibleGradientTypes or tensorflow.python.eager.tape.should_record",
    "TensorFlow 1.15 to 2.21",
    "zeros that arrive at gates count as gradients, which may then be computed without kernels: "
    "correct, but slower",
    otherwise=lambda: lambda tensor: True,
)
def tape_follows() -> Callable[[Any], bool]:
    """A function that says whether a tape or a forward accumulator follows a tensor."""
    with contextlib.suppress(ImportError, AttributeError):
        types = _of("tensorflow.python.pywrap_tfe", "TFE_Py_TapeSetPossibleGradientTypes")
        return lambda tensor: bool(types((tensor,)) != 0)
    # TensorFlow 1.15 knows tapes only.
    should_record = _of("tensorflow.python.eager.tape", "should_record")
    return lambda tensor: bool(should_record([tensor]))


@_uses(
    "tensorflow.python.pywrap_tfe.TFE_Py_TapeSetIsEmpty",
    "TensorFlow 2.4 to 2.21",
    "layers in inference run on the slower ops that save tensors for gradients",
    otherwise=True,
)
def tape_records() -> bool:
    """Whether a tape or a forward accumulator may follow what is computed now."""
    return not _of("tensorflow.python.pywrap_tfe", "TFE_Py_TapeSetIsEmpty")()


def is_marked_as_zeros(tensor: Any) -> bool:
    """Whether tf.zeros or tf.zeros_like has marked a tensor, as in TensorFlow 2.4 to 2.21.

    Without the mark, zeros are found in other ways.
    """
    return bool(getattr(tensor, "_is_zeros_tensor", False))


@_uses(
    "tensorflow.python.saved_model.save_context.in_save_context",
    "TensorFlow 2.4 to 2.21",
    "layers in functions stay on Keras's own path, because a file might be written",
    otherwise=True,
)
def in_save_context() -> bool:
    """Whether what is being traced will be written into a SavedModel."""
    return bool(_of("tensorflow.python.saved_model.save_context", "in_save_context")())


@_uses(
    "tensorflow.python.ops.control_flow_util.GraphOrParentsInXlaContext",
    "TensorFlow 2.4 to 2.21",
    "layers in functions stay on Keras's own path, because XLA might compile them",
    otherwise=True,
)
def in_xla_context(graph: Any) -> bool:
    """Whether XLA compiles a function's graph, or that of one around it."""
    look_up = _of("tensorflow.python.ops.control_flow_util", "GraphOrParentsInXlaContext")
    return bool(look_up(graph))


@_uses(
    "tf.Graph._kernel_label_map",
    "TensorFlow 1.15 to 2.21",
    "the library's kernels cannot be compared with TensorFlow's",
    otherwise=MissingInterfaceError,
)
def kernel_labels(graph: Any, labels: Dict[str, str]) -> ContextManager[Any]:
    """Nodes that are made meanwhile ask for kernels with these labels, by op."""
    return _of(graph, "_kernel_label_map")(labels)


@_uses(
    "tf.Operation._set_attr",
    "TensorFlow 1.15 to 2.21",
    "blockcell.keras.report() does not count what runs in functions",
)
def set_attribute(operation: Any, name: str, text: str) -> None:
    """Gives a node of a graph a text."""
    value = _of("tensorflow.core.framework.attr_value_pb2", "AttrValue")(s=text.encode())
    _of(operation, "_set_attr")(name, value)


@_uses(
    "tensorflow.python.framework.function_def_to_graph.function_def_to_graph",
    "TensorFlow 1.15 to 2.21",
    "shapes and graph passes in the bodies of functions are not reported",
)
def graph_of_functions() -> Optional[Callable[[Any], Any]]:
    """What makes a graph of a function's definition."""
    return _of("tensorflow.python.framework.function_def_to_graph", "function_def_to_graph")


@_uses(
    "tf.compat.v1.Session._make_callable_from_options",
    "TensorFlow 1.15 to 2.21",
    "the rewrites of the graph passes in a file are not reported",
)
def prepare_step(session: Any, targets: List[str]) -> None:
    """Makes TensorFlow prune and optimize a session's graph for a step, which is not run."""
    options = _of("tensorflow.core.protobuf.config_pb2", "CallableOptions")(target=targets)
    _of(session, "_make_callable_from_options")(options)


@_uses(
    "tf.Operation._control_outputs",
    "TensorFlow 1.15 to 2.21",
    "steps that only wait for others are not found in a file: pass them by --target",
    otherwise=lambda: [],
)
def waiting_for(operation: Any) -> List[Any]:
    """The operations that wait for one."""
    return list(_of(operation, "_control_outputs"))


@_uses(
    "tensorflow.core.protobuf.saved_model_pb2.SavedModel",
    "TensorFlow 1.15 to 2.21",
    "SavedModels cannot be read",
)
def saved_model() -> Any:
    """The class of the message that a SavedModel's file is."""
    return _of("tensorflow.core.protobuf.saved_model_pb2", "SavedModel")


# Of Keras.

_KERAS2 = ("_process_inputs", "_maybe_reset_cell_dropout_mask", "states")


@_uses(
    "inner_loop (Keras 3) or _process_inputs (Keras 2) of tf.keras.layers.RNN",
    "Keras 2.4 to 2.15 and 3.3 to 3.15",
    "blockcell.keras.enable() does nothing",
)
def loop_of_layers() -> Optional[str]:
    """The method of Keras's recurrent layers that runs their steps; it is theirs to override."""
    import tensorflow as tf

    layer = tf.keras.layers.RNN
    with contextlib.suppress(AttributeError):
        _of(layer, "inner_loop")
        return "inner_loop"
    for name in _KERAS2:
        _of(layer, name)
    return "call"


@_uses(
    "Layer._flatten_layers",
    "Keras 2.4 to 2.15 and 3.3 to 3.15",
    "layers within layers are not found: blockcell.keras.report() and enable(model) ignore "
    "them, and models that have run keep their functions",
    otherwise=lambda: [],
)
def inner_layers(layer: Any) -> List[Any]:
    """The layers directly within a layer or a model."""
    return list(_of(layer, "_flatten_layers")(recursive=False, include_self=False))
