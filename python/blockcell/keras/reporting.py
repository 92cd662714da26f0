"""What runs the recurrent layers of a model, and why."""

from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

from blockcell import loader, tf_internals
from blockcell.keras import environment, hooks, legacy_keras, scope

KERNELS, TENSORFLOW, STOCK = "blockcell", "tensorflow", "keras"


class LayerReport(NamedTuple):
    """What runs one layer."""

    layer: str
    """The layer's name."""
    type: str
    """The name of its class."""
    path: str
    """`"blockcell"`; `"keras"`, its own path; or `"tensorflow"`, that library's kernel of an op
    that blockcell has chosen."""
    runs: int
    """How often the layer has run on blockcell's kernels, forward, in this process."""
    dtype: str
    """The type in which the layer's tensors are, such as `"bfloat16"`. Sums are in float32."""
    precision: str
    """The level of its matrix products on blockcell's kernels: `"highest"`, `"high"` or `"medium"`
    (`set_float32_matmul_precision`); in inference `"int8"` or `"int8_except_x"`, where its weights
    are packed so. Before the first call it is the one asked for. Empty on another path."""
    isa: str
    """The instruction set of the kernels, such as `"avx2"`; empty on another path."""
    reason: str
    """Why it is not blockcell's path, or not in training, a clause that can follow "because"; empty
    if it always is."""


class Report(List[LayerReport]):
    """A list of `LayerReport`; printed, it is a table."""

    def __str__(self) -> str:
        """The table."""
        rows = [LayerReport._fields, *(tuple(map(str, record)) for record in self)]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        rows.insert(1, tuple("-" * width for width in widths))
        lines = ("  ".join(map(str.ljust, row, widths)) for row in rows)
        return "\n".join(line.rstrip() for line in lines)


def report(model: Any) -> Report:
    """Returns for each recurrent layer of a model what runs it, and why.

    Args:
      model: A Keras model, or a layer. It need not be built.

    Returns:
      A list of records `layer`, `type`, `path`, `runs`, `dtype`, `precision`, `isa` and `reason`,
      in the order of the layers, including those within layers such as `Bidirectional`. It prints
      as a table. `path` is the path when the model is next traced, as far as it depends on
      arguments. What depends on a call, such as the type of the inputs, is in the log. `runs`
      counts past calls.

    Raises:
      RuntimeError: As `enable`.
    """
    environment.check()
    return Report(_records(model))


def _records(model: Any) -> Iterator[LayerReport]:
    from blockcell.keras import reasons, run_counts

    jit = reasons.JIT if _is_compiled(model) else None
    for layer in hooks.recurrent_layers(model):
        path, reason = (STOCK, jit) if jit else _path(layer)
        how = run_counts.how(layer) if path == KERNELS else ("", "")
        runs = run_counts.runs(layer)
        dtype = layer.compute_dtype
        yield LayerReport(layer.name, type(layer).__name__, path, runs, dtype, *how, reason)


def _is_compiled(model: Any) -> bool:
    """Whether a model has been compiled with `jit_compile`."""
    return bool(
        getattr(model, "jit_compile", False)
        if hasattr(type(model), "jit_compile")
        else getattr(model, "_jit_compile", False)
    )


def _path(layer: Any) -> Tuple[str, str]:
    """What runs a layer, and why if it is not the kernels."""
    reason = _reason(layer)
    if reason is not None:
        return STOCK, reason
    from blockcell.keras import functions, kinds, reasons, sequences

    # Other layers become ops of the library's own.
    is_stock = sequences.runs_on_tensorflows_op(functions.of(layer.cell), layer.compute_dtype)
    is_lstm = kinds.of(layer) == kinds.LSTM
    if is_lstm and is_stock and "BlockLSTMV2" not in (loader.info()["taken_over"] or ()):
        return TENSORFLOW, "the library leaves TensorFlow's kernels of BlockLSTMV2 in place"
    in_training = reasons.of_training(layer)
    return KERNELS, "" if in_training is None else f"Keras's own path trains it: {in_training}"


def _reason(layer: Any) -> Optional[str]:
    """Why Keras's own path runs a layer; None if it does not."""
    from blockcell.keras import kinds, reasons

    if environment.is_of_tf_keras(layer):
        return legacy_keras.REASON
    if hooks.served(layer):
        if scope.get().of(layer) is None:
            return "blockcell.keras.enable() was called for other models"
        return reasons.of_layer(layer)
    if kinds.of(layer) is None:
        return reasons.of_layer(layer)
    if not hooks.enabled():
        return "blockcell.keras.enable() has not been called"
    method = tf_internals.loop_of_layers()
    return f"{type(layer).__name__} has a method {method} of its own"
