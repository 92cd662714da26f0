"""Real text that every machine has: the sources of the running interpreter's standard library."""

import pathlib
import sysconfig

import numpy as np


def sources(limit=None):
    """Returns the text.

    It is the standard library's own modules, in the order of their file names, one after the
    other: the same interpreter gives the same text.

    Args:
      limit: Number of bytes to stop at; None for all modules.

    Returns:
      The text as bytes.

    Raises:
      RuntimeError: The sources are not there.
    """
    folder = pathlib.Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(folder.glob("*.py")):
        text += path.read_bytes()
        if limit is not None and len(text) >= limit:
            break
    if not text:
        raise RuntimeError(f"this Python's standard library has no sources in {folder}")
    return bytes(text[:limit])


def windows(symbols, batch, time):
    """Cuts symbols into the windows of the training steps.

    The symbols are cut into `batch` streams; each step reads the next `time` symbols of every
    stream, and the last symbol of a window is the first of the next.

    Args:
      symbols: Integer array [length].
      batch: Number of streams.
      time: Symbols of each stream in a step.

    Returns:
      A list with the symbols that each step reads and those that it predicts, int32 [batch, time].

    Raises:
      RuntimeError: There are too few symbols for one window.
    """
    length = len(symbols) // batch
    if length <= time:
        raise RuntimeError(f"{len(symbols)} symbols are too few for {batch} streams of {time}")
    streams = symbols[: batch * length].reshape(batch, length).astype(np.int32)
    starts = range(0, length - time, time)
    parts = (streams[:, start : start + time + 1] for start in starts)
    return [(part[:, :-1], part[:, 1:]) for part in parts]
