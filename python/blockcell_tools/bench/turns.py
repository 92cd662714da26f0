"""Processes that take turns: one for each side of a comparison, for one number of threads."""

import tempfile
import time
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from blockcell_tools.bench.timing import MOST_ROUNDS, fewest_rounds
from blockcell_tools.bench.workers import Worker, WorkerError
from blockcell_tools.reference.inputs import scaled_error

TURN_SECONDS = 0.05
"""The least that a side's turn should take."""

WARM_SECONDS = 0.1
"""A turn's calls before those that are timed: threads that slept may share a core for a while."""

PAUSE_SECONDS = 0.02
"""Between turns: idle threads of the side before are given up by then."""

LOAD_SECONDS, FEWEST_CALLS, FEWEST_LOADS = 0.25, 8, 2
"""How long the turn of several clients lasts, calls of each that it has room for, and turns."""


class Turns(NamedTuple):
    """The rounds of a measurement."""

    seconds: Dict[str, List[float]]
    """Seconds a call in each round, by side."""
    spent: List[Optional[Tuple[float, float]]]
    """What `blockcell_tools.bench.machine.Neighbours.spent` returned at each turn."""
    errors: Dict[str, float]
    """The largest scaled difference of each rival's results from ours."""


def at_all_threads(module, names, nets, threads, library, about, **job):
    """Starts the sides for each number of threads, and ends them.

    Args:
      module: As of `Sides`.
      names: The same.
      nets: What is to be measured.
      threads: Numbers of threads.
      library: The library's file, or None.
      about: A description, to which what runs is added.
      job: What else each side is told first.

    Yields:
      Each net, with each number of threads and the `Sides` that run.
    """
    for number in threads:
        with Sides(module, names, {"threads": number, "library": library, **job}) as sides:
            sides.describe(about)
            for net in nets:
                yield net, number, sides


class Sides:
    """A process for each side, for one number of threads. Use it as a context manager."""

    def __init__(self, module, names, job):
        """Starts them.

        Args:
          module: A worker, whose `serve` is made by `bench.side.serve`.
          names: The sides, "ours" first.
          job: What each is told first.
        """
        self._workers = {}
        self.abouts = {}
        """What each side says of itself, by name; at first, and whenever a net was set up."""
        self._folder = tempfile.TemporaryDirectory()
        try:
            # They import their libraries side by side.
            for name in names:
                self._workers[name] = Worker(module, name)
            for name in names:
                self.abouts[name] = self._workers[name].ask(job)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *exception):
        """Ends them."""
        for worker in self._workers.values():
            worker.__exit__()
        self._folder.cleanup()

    def describe(self, about):
        """Adds what runs here to a description."""
        about["isa"] = self.abouts["ours"]["isa"]
        for found in self.abouts.values():
            about["versions"].update(found["versions"])

    def take_turns(self, net, sides, seconds, seed, largest_error, told=lambda share: None):
        """Compares the sides' results, and times the sides in turns.

        Args:
          net: What the workers know how to prepare: a named tuple.
          sides: Who has it; those that were not started are left out.
          seconds: Time to spend on all rounds, as far as the limits on their number allow.
          seed: Of inputs and weights.
          largest_error: How much results may differ, relative to the largest element.
          told: Called with the share of the time that has passed, after each round.

        Returns:
          The `Turns`.

        Raises:
          WorkerError: The sides disagree, or one ended.
        """
        estimates, errors = self._prepared(net, sides, seed, largest_error)
        turns = Turns({name: [] for name in estimates}, [], errors)

        def take_turn(name):
            estimate = estimates[name]
            repetitions = max(1, round(TURN_SECONDS / estimate))
            warm = WARM_SECONDS if estimate < 5 * TURN_SECONDS else 0.0
            found = self._workers[name].ask({"repetitions": repetitions, "warm": warm})
            turns.seconds[name].append(found["seconds"])
            turns.spent.append(found["spent"])

        _rounds(list(estimates), take_turn, fewest_rounds(max(estimates.values())), seconds, told)
        return turns

    def serve(self, net, sides, seconds, seed, largest_error):
        """The same, where each turn is that of several clients at once, as many as the net says.

        Returns:
          What `blockcell_tools.bench.clients.load` returned in each round, by side; and `errors` as
          of `Turns`.
        """
        estimates, errors = self._prepared(net, sides, seed, largest_error)
        loads = {name: [] for name in estimates}

        def take_turn(name):
            # Of a short measurement, turns are short, too.
            short = min(LOAD_SECONDS, seconds / len(estimates) / FEWEST_LOADS)
            length = max(short, FEWEST_CALLS * estimates[name])
            message = {"load": length, "warm": min(WARM_SECONDS, length)}
            loads[name].append(self._workers[name].ask(message))

        _rounds(list(estimates), take_turn, FEWEST_LOADS, seconds)
        return loads, errors

    def _prepared(self, net, sides, seed, largest_error):
        """About how long a call takes on each side that was started, and `errors` of `Turns`."""
        names = [name for name in self._workers if name in sides]
        estimates = {name: self._prepare(name, net, seed) for name in names}
        return estimates, self._compare(names, net, largest_error)

    def _prepare(self, name, net, seed):
        """Sets a net up on a side; returns about how long a call takes."""
        message = {"net": list(net), "seed": seed, "results": self._file(name)}
        answer = self._workers[name].ask(message)
        self.abouts[name] = answer["about"]
        return answer["seconds"]

    def about(self, name):
        """What a side says of itself by now."""
        return self._workers[name].ask({"about": True})

    def results(self, name):
        """The results of a side that was set up last: arrays by name."""
        with np.load(self._file(name)) as arrays:
            return dict(arrays)

    def _file(self, name):
        return str(Path(self._folder.name) / (name + ".npz"))

    def _compare(self, names, net, largest_error):
        """The largest scaled difference of each rival's results from ours, the first side's."""
        errors = {}
        with np.load(self._file(names[0])) as ours:
            for name in names[1:]:
                with np.load(self._file(name)) as theirs:
                    if set(theirs) != set(ours):
                        raise WorkerError(f"{net}: {name} has other results than ours")
                    found = {key: scaled_error(ours[key], theirs[key]) for key in ours}
                worst = max(found, key=found.get)
                # Written so that NaN, which compares false, does not pass.
                if not all(error <= largest_error for error in found.values()):
                    raise WorkerError(
                        f"{net}: {worst} of ours differs from that of {name} by {found[worst]:.1e} "
                        f"of its largest element, allowed are {largest_error:.1e}"
                    )
                errors[name] = found[worst]
        return errors


def _rounds(names, take_turn, fewest, seconds, told=lambda share: None):
    """Lets sides take turns until the time has passed.

    Args:
      names: The sides.
      take_turn: Given a name, takes that side's turn.
      fewest: The fewest rounds.
      seconds: Time to spend, as far as the limits on the number of rounds allow.
      told: Called with the share of the time that has passed, after each round.
    """
    end = time.perf_counter() + seconds
    number = 0
    while number < fewest or (number < MOST_ROUNDS and time.perf_counter() < end):
        # Each side is first in some rounds, and comes after each of the others.
        first = number % len(names)
        order = names[first:] + names[:first]
        for name in order if number // len(names) % 2 == 0 else reversed(order):
            time.sleep(PAUSE_SECONDS)
            take_turn(name)
        number += 1
        told(min(1.0, 1.0 - (end - time.perf_counter()) / seconds))
