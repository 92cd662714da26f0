"""Timing of two functions that do the same work, in turns."""

import gc
import math
import time
from typing import List, NamedTuple, Optional, Tuple

from blockcell_tools.bench.machine import Neighbours

MOST_ROUNDS = 200
"""Most rounds of a measurement, however short they are."""

FEWEST_ROUNDS = ((1.0, 6), (4.0, 4), (math.inf, 2))
"""Fewest rounds of a measurement, where a round of one function takes up to so many seconds."""

LONG = 0.5
"""Seconds from which a first call is not so different from the next that it must be repeated."""

SETTLING = 20e-3
"""Seconds of a turn that are not counted: threads of both sides may share a core at first."""

ROUNDS_OF_A_TURN = 3
"""Rounds that follow, which are counted."""

SETTLED = 0.1
"""Seconds from which on a round is so long that a turn is that round alone."""

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


def fewest_rounds(seconds):
    """Fewest rounds of a measurement, where a round of one function takes so many seconds."""
    return next(count for bound, count in FEWEST_ROUNDS if seconds <= bound)


def long_enough(build, seconds):
    """Repeats two functions until a round of either takes long enough for the clock.

    Args:
      build: Given a number of repetitions, returns two functions that each do a round of so many.
      seconds: The least that a round should take.

    Returns:
      The number of repetitions, the two functions, already warm, and the seconds that a round of
      the slower one took.
    """
    repetitions = 1
    while True:
        rounds = build(repetitions)
        times = [seconds_of(run) for run in rounds]
        if min(times) < LONG:
            times = [seconds_of(run) for run in rounds]
        if min(times) >= seconds or repetitions >= LONGEST_CHAIN:
            return repetitions, rounds, max(times)
        # Short rounds are mostly overhead and would promise too few: approach in steps.
        factor = min(1.25 * seconds / min(times), 16.0)
        repetitions = min(math.ceil(repetitions * factor), LONGEST_CHAIN)


def take_turns(build, round_seconds, seconds) -> Turns:
    """Times two functions in turns, in alternating order: first, second; second, first; and so on.

    Args:
      build: As of `long_enough`.
      round_seconds: The least that a round should take.
      seconds: Time to spend on all rounds, as far as the limits on their number allow.

    Returns:
      The `Turns`.
    """
    repetitions, runs, longest = long_enough(build, round_seconds)
    fewest = fewest_rounds(longest)
    times: Tuple[List[float], List[float]] = ([], [])
    gc.collect()
    gc.disable()
    try:
        neighbours = Neighbours()
        end = time.perf_counter() + seconds
        while len(times[0]) < fewest or (len(times[0]) < MOST_ROUNDS and time.perf_counter() < end):
            order = (0, 1) if len(times[0]) % 2 == 0 else (1, 0)
            for side in order:
                rounds = _turn(runs[side], longest)
                times[side].extend(seconds / repetitions for seconds in rounds)
        others = neighbours.cores()
    finally:
        gc.enable()
    return Turns(repetitions, *times, others)


def _turn(run, longest):
    """Seconds of the rounds of one turn, where a round of either side takes up to `longest`."""
    if longest >= SETTLED:
        return [seconds_of(run)]
    end = time.perf_counter() + SETTLING
    while time.perf_counter() < end:
        run()
    return [seconds_of(run) for _ in range(ROUNDS_OF_A_TURN)]
