"""The training text: the sources of the Python standard library of the running interpreter."""

import models
import numpy as np
from common import standard_library

LIMIT = 1 << 20
"""Bytes of text to use."""


def corpus(limit=LIMIT):
    """Returns the text.

    Args:
      limit: Number of bytes to stop at.

    Returns:
      The text as a uint8 array [length].
    """
    return np.frombuffer(standard_library.sources(limit), np.uint8)


def windows(text):
    """Cuts the text into the windows of the training steps, as `standard_library.windows` does.

    Args:
      text: uint8 array [length].

    Returns:
      A list with what each step is fed: `models.INPUTS` and `models.TARGETS`, int32 [BATCH, TIME].
    """
    return [
        {models.INPUTS: inputs, models.TARGETS: targets}
        for inputs, targets in standard_library.windows(text, models.BATCH, models.TIME)
    ]


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
