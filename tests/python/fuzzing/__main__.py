"""Runs many random graphs with and without the rewrites, and reports what differs."""

import argparse
import collections
import concurrent.futures
import json
import sys
import time
from pathlib import Path

from fuzzing import generator, programs, shrinker
from fuzzing.runner import Runner

BATCH = 50
SHRUNK = 2  # Programs of each kind that are made small.


def main(argv=None):
    options = _options(argv)
    with Runner(options.python) as runner:
        report = Report(runner.tensorflow, options)
        try:
            for made in _batches(options, runner.functions):
                for verdict in runner.judge(made):
                    report.add(verdict, runner)
                report.progress()
        finally:  # Also where somebody ends it before the last graph.
            report.finish()
    return 1 if report.findings else 0


def _batches(options, functions):
    """The programs, each batch made while the one before it runs."""
    seeds = range(options.seed, options.seed + options.graphs)
    batches = [seeds[k : k + BATCH] for k in range(0, len(seeds), BATCH)]
    make = lambda some: [generator.generate(seed, functions) for seed in some]  # noqa: E731
    with concurrent.futures.ThreadPoolExecutor(1) as maker:
        ahead = [maker.submit(make, batch) for batch in batches[:1]]
        for k in range(len(batches)):
            made = ahead.pop().result()
            ahead = [maker.submit(make, batch) for batch in batches[k + 1 : k + 2]]
            yield made


def _options(argv):
    parser = argparse.ArgumentParser(prog="fuzz-graphs", description=__doc__)
    parser.add_argument("--graphs", type=int, default=2000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--results", type=Path, default=Path("build/fuzz"), help="a folder")
    parser.add_argument("--python", default=sys.executable, help="that has the TensorFlow")
    return parser.parse_args(argv)


class Report:
    """What is known so far, on the terminal and in a file."""

    def __init__(self, tensorflow, options):
        self.findings = []
        self._kinds = collections.Counter()
        self._rewritten = collections.Counter()
        self._errors = collections.Counter()
        self._graphs, self._start = 0, time.monotonic()
        name = f"tf-{tensorflow}-seed-{options.seed}.json"
        self._path, self._tensorflow = options.results / name, tensorflow
        self._wanted, self._seed = options.graphs, options.seed

    def add(self, verdict, runner):
        self._graphs += 1
        self._kinds[verdict.kind] += 1
        self._errors[verdict.error] += verdict.error is not None
        self._rewritten.update(op for op, nodes in verdict.rewritten.items() if nodes)
        self._rewritten["any"] += any(verdict.rewritten.values())
        if not verdict.is_finding:
            return
        print("\rseed {}: {}: {}".format(verdict.program["seed"], verdict.kind, verdict.text))
        program, small = verdict.program, None
        if self._kinds[verdict.kind] <= SHRUNK:
            small = shrinker.small(runner, verdict)
            print(programs.text(small))
        finding = {"seed": program["seed"], "kind": verdict.kind, "text": verdict.text}
        self.findings.append(dict(finding, program=program, small=small))
        self._write()

    def progress(self):
        rate = self._graphs / max(1e-3, time.monotonic() - self._start)
        line = "{} of {} graphs, {} findings, {:.0f} graphs a second"
        line = line.format(self._graphs, self._wanted, len(self.findings), rate)
        print("\r" + line, end="" if sys.stdout.isatty() else "\n", flush=True)

    def finish(self):
        self._write()
        summary = self._summary()
        print(
            "\nTensorFlow {}: {graphs} graphs in {seconds:.0f} s".format(
                self._tensorflow, **summary
            )
        )
        for op, share in summary["rewritten"].items():
            print(f"  rewritten, {op}: {100 * share:.1f} %")
        for error, count in summary["errors"].items():
            print(f"  TensorFlow alone ends with {error}: {count}")
        for kind, count in summary["kinds"].items():
            print(f"  {kind}: {count}")
        print(f"written to {self._path}")

    def _summary(self):
        kinds = {kind or "the same": count for kind, count in self._kinds.most_common()}
        shares = {op: count / max(1, self._graphs) for op, count in self._rewritten.most_common()}
        seconds = round(time.monotonic() - self._start, 1)
        errors = {error: count for error, count in self._errors.most_common() if count}
        summary = {"graphs": self._graphs, "seconds": seconds, "rewritten": shares}
        return dict(summary, kinds=kinds, errors=errors)

    def _write(self):
        self._path.parent.mkdir(parents=True, exist_ok=True)
        content = dict(self._summary(), tensorflow=self._tensorflow, seed=self._seed)
        content["findings"] = self.findings
        self._path.write_text(json.dumps(content, indent=1))


if __name__ == "__main__":
    sys.exit(main())
