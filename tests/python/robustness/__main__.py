"""Calls every op in thousands of malformed and odd ways, and tells what came of it.

A valid call must give the values of the float64 reference. An invalid one must be an
InvalidArgumentError that names the op and the tensor, with the expected and the actual shape.
Calls run in sessions, and in TensorFlow 2 eagerly and in a `tf.function`, too. TensorFlow's own
kernels get the same calls: an error of any kind is enough from them. The exit code is 1 if a call
of the library's kernels is not handled.
"""

import argparse
import collections
import json
import sys
import time
from pathlib import Path

import tensorflow as tf

from robustness import runner


def main(argv=None):
    options = _options(argv)
    started = time.monotonic()
    jobs = [
        job
        for job in runner.jobs(tf.__version__.startswith("1."))
        if not options.modes or (job.mode if job.is_ours else "stock") in options.modes
    ]
    minor = ".".join(tf.__version__.split(".")[:2])
    file = options.results / f"tf-{minor}.json"
    found = _kept(file) if options.keep else {}
    for job, of_job in runner.run(jobs, share=options.share, ops=options.ops).items():
        found.setdefault(job, {}).update(of_job)
    for job in jobs:
        if job.is_ours:
            for text in runner.failures(found[job]):
                print(f"FAILED {job}: {text}")
    modes = "; ".join(str(job) for job in found)
    print(f"TensorFlow {tf.__version__} ({modes}), {time.monotonic() - started:.0f} s:\n")
    print(runner.table(found))
    _keep(file, found)
    return 0 if all(runner.is_good(one) for job, one in found.items() if job.is_ours) else 1


def _kept(file):
    """What former runs have found, by their jobs."""
    if not file.exists():
        return {}
    return {
        runner.Job(*job): {op: (collections.Counter(n), shown) for op, (n, shown) in found.items()}
        for job, found in json.loads(file.read_text(encoding="utf-8"))
    }


def _keep(file, found):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(list(found.items())), encoding="utf-8")


def _options(argv):
    parser = argparse.ArgumentParser(prog="robustness", description=__doc__)
    parser.add_argument("--share", type=int, default=1, help="run one case of so many")
    parser.add_argument("--ops", nargs="*", default=[], help="only these ops")
    parser.add_argument(
        "--modes",
        nargs="*",
        default=[],
        help="only these ways; stock: TensorFlow's kernels",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep what former runs found, of other ops and in other ways",
    )
    parser.add_argument(
        "--results", type=Path, default=Path("build/robustness"), help="a folder for what was found"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
