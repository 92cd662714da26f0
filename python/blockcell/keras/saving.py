"""Writes models for programs that load the library."""

import os
from typing import Any, Union

from blockcell.keras import hooks


def export(model: Any, filepath: Union[str, "os.PathLike[str]"], **options: Any) -> None:
    """Writes a model as a SavedModel whose LSTM and GRU layers are ops on blockcell's kernels.

    Programs in Python, Java or C++ must load the library before such a file, because GRU layers
    become the library's own op. Layers that the kernels do not support keep Keras's own path;
    `report` lists them. The files that Keras itself writes with `model.export` or `model.save` have
    Keras's own path in all layers, with or without `enable`.

    Args:
      model: A Keras model that is built.
      filepath: The folder to write. Existing files are overwritten.
      **options: Options of `model.export` (Keras 2.13 and later, Keras 3), or of
        `tf.saved_model.save` if Keras has no `model.export`.

    Raises:
      RuntimeError: As `enable`.
      LibraryError: As `blockcell.load`.
    """
    with hooks.enable(model):
        import tensorflow as tf

        from blockcell.keras import exports

        write = getattr(model, "export", None)
        with exports.on_kernels():
            if write is None:
                tf.saved_model.save(model, os.fspath(filepath), **options)
            else:
                write(os.fspath(filepath), **options)
