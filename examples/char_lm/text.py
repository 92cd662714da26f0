"""The training text: the sources of the Python standard library of the running interpreter."""

import pathlib
import sysconfig

import models
import numpy as np

LIMIT = 1 << 20
"""Bytes of text to use."""


def corpus(limit=LIMIT):
    """Returns the text.

    It is the standard library's own modules, in the order of their file names, one after the
    other: the same interpreter gives the same text.

    Args:
      limit: Number of bytes to stop at.

    Returns:
      The text as a uint8 array [length].

    Raises:
      RuntimeError: The sources are not there or too short.
    """
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= limit:
            break
    if len(text) <= models.BATCH * (models.TIME + 1):
        raise RuntimeError(f"this Python's standard library has no sources in {folder}")
    return np.frombuffer(bytes(text[:limit]), np.uint8)


def windows(text):
    """Cuts the text into the windows of the training steps.

    The text is cut into BATCH streams; each step reads the next TIME symbols of every stream, and
    the last symbol of a window is the first of the next.

    Args:
      text: uint8 array [length].

    Returns:
      int32 array [steps, BATCH, TIME + 1]: inputs are [:, :, :-1], targets are [:, :, 1:].
    """
    length = len(text) // models.BATCH
    streams = text[: models.BATCH * length].reshape(models.BATCH, length).astype(np.int32)
    starts = range(0, length - models.TIME, models.TIME)
    return np.stack([streams[:, start : start + models.TIME + 1] for start in starts])
