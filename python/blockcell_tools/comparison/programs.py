"""Runs a Python program without and with the library, and compares its steps and results."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import numpy as np

from blockcell_tools import graph_plan, hosting
from blockcell_tools.bench.workers import environment_of
from blockcell_tools.comparison.results import CompareError, Difference, Found, Row, row_of
from blockcell_tools.reference.inputs import scaled_error

SIDES = ("without", "ours")
MOST_ROWS = 3
"""Kinds of steps that are shown: those that take longest together."""
FIRST = 10
"""Steps whose losses are compared. Training amplifies rounding, so that later ones differ more."""
_LINES = 20
"""Of a program that failed, which are shown."""


def measure(
    program: hosting.Program,
    options: Dict[str, Any],
    told: Callable[[str, int, Optional[int]], None],
) -> Found:
    """Runs a program twice.

    Args:
      program: The program.
      options: `keras`, `precision`, `library` and `seed` of `program_side.Job`.
      told: Called with what happens, how many steps are done, and how many there are, if known.

    Raises:
      CompareError: It failed, or loads the library itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        done: Dict[str, Any] = {}
        total = None
        for side in SIDES:
            job = dict(program._asdict(), side=side, folder=folder, **options)
            done[side] = _run(job, told, total)
            total = sum(map(len, done[side]["steps"].values()))
        if done["without"]["about"].get("loaded"):
            raise CompareError(
                "the program loads blockcell itself, so there is no baseline: remove that from "
                "the program"
            )
        arrays = [dict(np.load(str(Path(folder) / (side + ".npz")))) for side in SIDES]
    return _found(done, arrays)


def _run(job: Dict[str, Any], told: Any, total: Optional[int]) -> Dict[str, Any]:
    """Runs one side; returns what it has written, with its log."""
    words = "without blockcell" if job["side"] == "without" else "with blockcell"
    told(words, 0, total)
    read, write = os.pipe()
    os.set_blocking(write, False)
    log = Path(job["folder"]) / (job["side"] + ".log")
    command = [sys.executable, "-m", "blockcell_tools.comparison.program_side"]
    environment = environment_of(BLOCKCELL_LOG="1" if job["side"] == "ours" else "0")
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, json.dumps(dict(job, pipe=write))],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            pass_fds=[write],
        )
    os.close(write)
    try:
        with os.fdopen(read) as steps:
            for line in steps:
                told(words, int(line), total)
        code = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    said = log.read_text(encoding="utf-8", errors="replace")
    file = Path(job["folder"]) / (job["side"] + ".json")
    if code != 0 or not file.exists():
        lines = [line for line in said.splitlines() if not line.startswith("blockcell: graph ")]
        tail = "\n".join(lines[-_LINES:])
        raise CompareError(f"the program ended with {code} {words}:\n{tail}")
    return dict(json.loads(file.read_text(encoding="utf-8")), log=said)


def _found(done: Dict[str, Any], arrays: List[Dict[str, Any]]) -> Found:
    ours, without = done["ours"], done["without"]
    rows = list(_rows(without["steps"], ours["steps"]))
    shown = [row.step for row in rows]
    losses = {
        f"{step}: {name}": {"without": numbers, "ours": ours["losses"][step][name]}
        for step in shown
        for name, numbers in without["losses"][step].items()
        if name in ours["losses"][step]
    }
    about = dict(ours["about"], notes=list(_notes(done)))
    about.pop("loaded", None)
    return Found(
        about=about,
        kind="program",
        rows=rows,
        memory={side: done[side]["memory"] for side in SIDES},
        ran=ours["ran"]["runs"],
        stays=[*ours["ran"]["said"], *_stays(ours["log"])],
        differences=list(_differences(losses, *arrays)),
        losses=losses,
        seconds={side: done[side]["seconds"] for side in SIDES},
    )


def _rows(without: Dict[str, List[float]], ours: Dict[str, List[float]]) -> Iterator[Row]:
    """The kinds of steps that take longest together."""
    common = [step for step, seconds in without.items() if seconds and ours.get(step)]
    # What happens once, such as the initialization of variables, is no step.
    common = [step for step in common if len(without[step]) > 1] or common
    for step in sorted(common, key=lambda step: -sum(without[step]))[:MOST_ROWS]:
        count = min(len(without[step]), len(ours[step]))
        # The first step traces functions or prepares a graph.
        first = 1 if count > 1 else 0
        yield row_of(step, None, without[step][first:count], ours[step][first:count])


def _notes(done: Dict[str, Any]) -> Iterator[str]:
    counts = [{step: len(one) for step, one in done[side]["steps"].items()} for side in SIDES]
    if counts[0] != counts[1]:
        yield "The two runs took different steps, because the program depends on its results."
    if not counts[0]:
        yield (
            "No steps were found: no batches of Keras, no Session.run, and no calls of a "
            "tf.function."
        )


def _stays(log: str) -> Iterator[str]:
    """What the graph passes left as it is, and why."""
    places = [place for place in graph_plan.places(log) if place.becomes is None]
    yield from graph_plan.lines(places)


def _differences(
    losses: Dict[str, Any], without: Dict[str, Any], ours: Dict[str, Any]
) -> Iterator[Difference]:
    for name, sides in losses.items():
        first = [np.array(sides[side][:FIRST]) for side in SIDES]
        if len(first[0]) == len(first[1]):
            words = f"{name} of the first {len(first[0])} steps"
            yield Difference(words, scaled_error(first[1], first[0]))
    for name, theirs in without.items():
        if name in ours and ours[name].shape == theirs.shape:
            yield Difference(f"{name} of the first step", scaled_error(ours[name], theirs))
