"""Keras's LSTM and GRU layers on blockcell's kernels.

`enable` runs all layers of the process on the kernels, or those of one model, and `disable` undoes
it. `enabled` returns whether it is on, and `report` what runs each layer of a model. `LSTM` and
`GRU` are layers that run on the kernels without `enable`. `export` writes a model for programs that
load the library.

    import blockcell

    blockcell.keras.enable()

Importing this package imports neither Keras nor TensorFlow. Keras is imported on the first use of
the package.
"""

from typing import Any

from blockcell.keras import environment
from blockcell.keras.hooks import Enabled, disable, enable, enabled
from blockcell.keras.reporting import LayerReport, Report, report
from blockcell.keras.saving import export

__all__ = [
    "GRU",
    "LSTM",
    "Enabled",
    "LayerReport",
    "NotServedError",
    "Report",
    "disable",
    "enable",
    "enabled",
    "export",
    "report",
]


def __getattr__(name: str) -> Any:
    if name in ("GRU", "LSTM"):
        environment.check()
        from blockcell.keras import layers

        return getattr(layers, name)
    if name == "NotServedError":
        from blockcell.keras import dispatch

        return dispatch.NotServedError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
