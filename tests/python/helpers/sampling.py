"""Which cases of a large grid are run: a sample, or with BLOCKCELL_WHOLE=1 all of them."""

import os
import random

WHOLE = os.environ.get("BLOCKCELL_WHOLE", "") not in ("", "0")


def whole_in(tensorflow):
    """Whether all cases are run of what depends little on the release: not in TensorFlow 1.15."""
    return WHOLE or not tensorflow.__version__.startswith("1.")


def sample(cases, features, whole=WHOLE):
    """Some of the cases, the same ones at every call, which have all features among them.

    Args:
      cases: A list.
      features: A function of a case; returns what some case of the sample must have: hashable.
      whole: Whether to return all cases.

    Returns:
      Cases in their order. Each feature of any case is a feature of one of them.
    """
    if whole:
        return list(cases)
    order = list(range(len(cases)))
    random.Random(20).shuffle(order)
    covered, chosen = set(), []
    for index in order:
        new = set(features(cases[index])) - covered
        if new:
            covered |= new
            chosen.append(index)
    return [cases[index] for index in sorted(chosen)]
