"""The training text: the words of the Python standard library of the running interpreter."""

import collections
import re

import numpy as np
from common import standard_library

UNKNOWN = 0
"""Number of all words that are not in the vocabulary."""


def words():
    """Returns the text as a list of words.

    Names, numbers, single punctuation marks and line feeds count as words.

    Raises:
      RuntimeError: The sources are not there.
    """
    text = standard_library.sources().decode("utf-8", errors="replace")
    return re.findall(r"\w+|[^\w\s]|\n", text)


def numbered(text, vocabulary):
    """Numbers words by how frequent they are.

    Args:
      text: List of words.
      vocabulary: How many different numbers to use.

    Returns:
      An int32 array [len(text)]: 1 is the most frequent word, and so on; `UNKNOWN` is a word that
      is not among the vocabulary - 1 most frequent ones.

    Raises:
      RuntimeError: The text has fewer different words than that.
    """
    counts = collections.Counter(text)
    if len(counts) < vocabulary:
        raise RuntimeError(f"the text has {len(counts)} different words, not {vocabulary}")
    # Words that are equally frequent in alphabetical order: the same text gives the same numbers.
    order = sorted(counts, key=lambda word: (-counts[word], word))
    numbers = {word: number for number, word in enumerate(order[: vocabulary - 1], UNKNOWN + 1)}
    return np.array([numbers.get(word, UNKNOWN) for word in text], np.int32)


def windows(text, vocabulary, batch, time):
    """Returns what the training steps read and predict, as `standard_library.windows` does."""
    return standard_library.windows(numbered(text, vocabulary), batch, time)
