"""Timing of two functions that do the same work, in turns."""

import gc
import math
import time
from typing import List, NamedTuple, Optional

from bench.machine import Neighbours

FEWEST_ROUNDS, MOST_ROUNDS = 6, 200
"""Rounds of a measurement, however long or short they are."""

LONGEST_CHAIN = 600
"""Most repetitions in a round: building longer graphs takes longer than running them."""


class Turns(NamedTuple):
    """The rounds of a measurement: seconds a call of the first and of the second function."""

    repetitions: int
    first: List[float]
    second: List[float]
    neighbours: Optional[float]
    """Cores that other processes used meanwhile, if known."""


def seconds_of(run):
    """Seconds that one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def long_enough(build, seconds):
    """Repeats two functions until a round of either takes long enough for the clock.

    Args:
      build: Given a number of repetitions, returns two functions that each do a round of so many.
      seconds: The least that a round should take.

    Returns:
      The number of repetitions, and the two functions, already warm.
    """
    repetitions = 1
    while True:
        rounds = build(repetitions)
        for run in rounds:
            run()
        shortest = min(seconds_of(run) for run in rounds)
        if shortest >= seconds or repetitions >= LONGEST_CHAIN:
            return repetitions, rounds
        # Short rounds are mostly overhead and would promise too few: approach in steps.
        factor = min(1.25 * seconds / shortest, 16.0)
        repetitions = min(math.ceil(repetitions * factor), LONGEST_CHAIN)


def take_turns(build, round_seconds, seconds) -> Turns:
    """Times two functions in alternating order: first, second; second, first; and so on.

    Args:
      build: As of `long_enough`.
      round_seconds: The least that a round should take.
      seconds: Time to spend on all rounds, as far as the limits on their number allow.

    Returns:
      The `Turns`.
    """
    repetitions, runs = long_enough(build, round_seconds)
    times = ([], [])
    gc.collect()
    gc.disable()
    try:
        neighbours = Neighbours()
        end = time.perf_counter() + seconds
        while len(times[0]) < FEWEST_ROUNDS or (
            len(times[0]) < MOST_ROUNDS and time.perf_counter() < end
        ):
            order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
            for side in order:
                times[side].append(seconds_of(runs[side]) / repetitions)
        others = neighbours.cores()
    finally:
        gc.enable()
    return Turns(repetitions, *times, others)
