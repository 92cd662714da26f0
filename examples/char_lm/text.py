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
      A list with what each step is fed: `models.INPUTS` and `models.TARGETS`, int32 [BATCH, TIME].
    """
    length = len(text) // models.BATCH
    streams = text[: models.BATCH * length].reshape(models.BATCH, length).astype(np.int32)
    starts = range(0, length - models.TIME, models.TIME)
    parts = (streams[:, start : start + models.TIME + 1] for start in starts)
    return [{models.INPUTS: part[:, :-1], models.TARGETS: part[:, 1:]} for part in parts]


def lines(text):
    """Cuts the text into its lines; each step reads BATCH of them, in an order drawn by lot.

    A line is read from the line feed before it to the symbol before its own line feed, or its first
    LINE_TIME symbols; the symbols to predict are those of the line itself. What is left of a row is
    filled with zeros.

    Args:
      text: uint8 array [length].

    Returns:
      A list with what each step is fed: `models.INPUTS` and `models.TARGETS`, int32
      [BATCH, LINE_TIME], and `models.LENGTHS`, int64 [BATCH].
    """
    feed = b"\n"
    rows = [line + feed for line in text.tobytes().split(feed)[:-1]]
    # Lines that stand together are alike: tables, say. RandomState draws the same in every NumPy.
    np.random.RandomState(models.GRAPH_SEED).shuffle(rows)
    lengths = np.array([min(len(row), models.LINE_TIME) for row in rows], np.int64)
    symbols = np.zeros((len(rows), models.LINE_TIME + 1), np.int32)
    for row, length, into in zip(rows, lengths, symbols):
        into[: length + 1] = np.frombuffer(feed + row, np.uint8)[: length + 1]
    inputs = np.where(np.arange(models.LINE_TIME) < lengths[:, np.newaxis], symbols[:, :-1], 0)

    starts = range(0, len(rows) - models.BATCH + 1, models.BATCH)
    return [
        {
            models.INPUTS: inputs[start : start + models.BATCH],
            models.TARGETS: symbols[start : start + models.BATCH, 1:],
            models.LENGTHS: lengths[start : start + models.BATCH],
        }
        for start in starts
    ]
