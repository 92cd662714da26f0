"""The process of one side of a program's comparison: runs it, and writes what it did.

    python -m blockcell_tools.comparison.program_side JOB

JOB is JSON, with the fields of `Job`.
"""

import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from blockcell import after_import
from blockcell_tools import hosting
from blockcell_tools.bench.machine import resident
from blockcell_tools.comparison import steps


class Job(NamedTuple):
    """What a side does."""

    side: str
    """"without" or "ours"."""
    folder: str
    """Where the results go: `<side>.json` and `<side>.npz`."""
    name: str
    arguments: List[str]
    is_module: bool
    keras: bool
    """Whether `ours` calls `blockcell.keras.enable()`."""
    precision: Optional[str]
    library: Optional[str]
    seed: int
    pipe: Optional[int]
    """A file descriptor that is told of steps."""


def main(job: Job) -> None:
    """Runs the program."""
    recorder = steps.Recorder(steps.telling(job.pipe))
    said = hosting.collect_log()
    _seed(job.seed)
    if job.side == "ours":
        hosting.prepare(job.keras, job.precision, job.library)
    steps.watch(recorder)
    start = time.perf_counter()
    try:
        hosting.execute(hosting.Program(job.name, job.arguments, job.is_module))
    finally:
        seconds = time.perf_counter() - start
        content = {"seconds": seconds, "memory": resident()["VmHWM"], **_kinds(recorder)}
        content["ran"] = hosting.found(said)
        content["about"] = _about()
        file = Path(job.folder) / job.side
        file.with_suffix(".json").write_text(json.dumps(content), encoding="utf-8")
        arrays = {
            f"{name}: {path}": value
            for name, kind in recorder.kinds.items()
            for path, value in kind.outputs.items()
        }
        np.savez(str(file.with_suffix(".npz")), **arrays)


def _seed(seed: int) -> None:
    """Makes random numbers those of the other side, as far as a program does not seed its own."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    after_import.call(lambda: _seed_tensorflow(seed), "tensorflow")


def _seed_tensorflow(seed: int) -> None:
    import tensorflow as tf

    initialize = tf.Graph.__init__

    def seeded(self: Any, *args: Any, **kwargs: Any) -> None:
        initialize(self, *args, **kwargs)
        self.seed = seed

    if not tf.__version__.startswith("1."):
        tf.random.set_seed(seed)
    # A seed of TensorFlow 1.x is that of one graph.
    tf.Graph.__init__ = seeded
    tf.compat.v1.get_default_graph().seed = seed


def _kinds(recorder: steps.Recorder) -> Dict[str, Any]:
    return {
        "steps": {name: kind.seconds for name, kind in recorder.kinds.items()},
        "losses": {name: kind.losses for name, kind in recorder.kinds.items()},
    }


def _about() -> Dict[str, Any]:
    """Versions and instruction set, as far as the program has come."""
    tf = sys.modules.get("tensorflow")
    found: Dict[str, Any] = {"versions": {}}
    if tf is None:
        return found
    import blockcell

    info = blockcell.info()
    found["versions"]["tensorflow"] = tf.__version__
    found.update({key: info[key] for key in ("isa", "loaded", "float32_matmul_runs", "weights")})
    return found


if __name__ == "__main__":
    os.environ.pop("BLOCKCELL_OVERRIDE", None)
    main(Job(**json.loads(sys.argv[1])))
