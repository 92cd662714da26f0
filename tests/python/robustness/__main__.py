"""Calls every op in thousands of malformed and odd ways, and tells what came of it.

A valid call must give the values of the float64 reference. An invalid one must be an
InvalidArgumentError that names the op and the tensor, with the expected and the actual shape.
Calls run in sessions, and in TensorFlow 2 eagerly and in a `tf.function`, too. TensorFlow's own
kernels get the same calls: an error of any kind is enough from them. The exit code is 1 if a call
of the library's kernels is not handled.
"""

import argparse
import sys
import time
from pathlib import Path

import tensorflow as tf

from robustness import runner


def main(argv=None):
    options = _options(argv)
    started = time.monotonic()
    jobs = runner.jobs(tf.__version__.startswith("1."))
    if not options.stock:
        jobs = [job for job in jobs if job.is_ours]
    found = runner.run(jobs, share=options.share, ops=options.ops)
    ours = [one for job, one in found.items() if job.is_ours]
    for job, one in found.items():
        if job.is_ours:
            for text in runner.failures(one):
                print(f"FAILED {job}: {text}")
    modes = ", ".join(str(job) for job in jobs)
    table = runner.table(found)
    seconds = time.monotonic() - started
    text = f"TensorFlow {tf.__version__} ({modes}), {seconds:.0f} s:\n\n{table}\n"
    print(text)
    if options.results:
        options.results.mkdir(parents=True, exist_ok=True)
        minor = ".".join(tf.__version__.split(".")[:2])
        (options.results / f"tf-{minor}.md").write_text(text, encoding="utf-8")
    return 0 if all(map(runner.is_good, ours)) else 1


def _options(argv):
    parser = argparse.ArgumentParser(prog="robustness", description=__doc__)
    parser.add_argument("--share", type=int, default=1, help="run one case of so many")
    parser.add_argument("--ops", nargs="*", default=[], help="only these ops")
    parser.add_argument("--no-stock", dest="stock", action="store_false", help="ours alone")
    parser.add_argument("--results", type=Path, help="a folder for the table")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
