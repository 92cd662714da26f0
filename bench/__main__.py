"""The command line of the benchmark."""

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench import machine, ops, report


class WorkerError(Exception):
    """A worker did not do its job; says why."""


def main():
    """Runs the benchmark; the exit code is 1 if a check fails."""
    arguments = parse_arguments()
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    try:
        about, limits, rows = measure(arguments, console)
    except (WorkerError, machine.MachineError) as error:
        sys.exit(f"bench: {error}")
    report.print_tables(console, rows)
    write(arguments.output, about, limits, rows, console)
    disturbed = sum(row.disturbed() for row in rows)
    if disturbed:
        console.print(
            f"Other processes took cores from {disturbed} of {len(rows)} rows (marked !): "
            "measure those again on a quiet machine."
        )
    slow = [row for row in rows if row.ratio < (arguments.check_ratio or 0.0)]
    if slow:
        named = "\n".join(f"  {row.case}, {at(row.threads)}: {row.ratio:.2f}" for row in slow)
        sys.exit(f"bench: below the ratio of {arguments.check_ratio}:\n{named}")


def parse_arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Times TensorFlow's kernels and ours side by side."
    )
    add = parser.add_argument
    add("--ops", nargs="+", choices=list(ops.OPS), default=list(ops.OPS), help="default: all")
    add(
        "--shapes",
        nargs="+",
        type=shape,
        default=ops.SHAPES,
        metavar="BxC or BxDxC",
        help="batch, input (default: as cell) and cell size; default: seven from 1x128 to 128x1024",
    )
    add("--dtypes", nargs="+", choices=list(ops.ITEM_BYTES), default=list(ops.ITEM_BYTES))
    add(
        "--peephole",
        choices=["off", "on", "both"],
        default="both",
        help="use_peephole of the LSTM ops (default: both)",
    )
    add(
        "--threads",
        nargs="+",
        type=positive(int),
        default=[1, 2],
        metavar="N",
        help="sizes of the intra-op pool (default: 1 2)",
    )
    add(
        "--seconds",
        type=positive(float),
        default=1.0,
        help="time for the rounds of a row (default: %(default)s)",
    )
    add(
        "--check-ratio",
        type=positive(float),
        metavar="X",
        help="fail if stock/ours is below X in any row",
    )
    add(
        "--library",
        metavar="FILE",
        help="libblockcell.so to measure (default: the one built for this Python's TensorFlow)",
    )
    add(
        "--output",
        type=Path,
        default=machine.ROOT / "build" / "bench",
        metavar="FOLDER",
        help="where JSON and Markdown go (default: build/bench)",
    )
    add("--seed", type=int, default=20191018, help="of the inputs (default: %(default)s)")
    arguments = parser.parse_args()
    arguments.threads = sorted(set(arguments.threads))
    arguments.peephole = {"off": [False], "on": [True], "both": [False, True]}[arguments.peephole]
    return arguments


def shape(text):
    """Batch, input and cell size of `BxC` or `BxDxC`."""
    try:
        sizes = [int(size) for size in text.split("x")]
    except ValueError:
        sizes = []
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no shape such as 20x200 or 20x100x200")
    return sizes[0], sizes[1], sizes[-1]


def positive(kind):
    """A type of argument: a number above zero."""

    def parse(text):
        number = kind(text)
        if not number > 0:
            raise argparse.ArgumentTypeError(f"{text} is not above 0")
        return number

    return parse


def measure(arguments, console):
    """Measures all cases at all numbers of threads, and the machine before and after."""
    cases = ops.cases(arguments.ops, arguments.dtypes, arguments.peephole, arguments.shapes)
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "command": shlex_join(["python", "-m", "bench", *sys.argv[1:]]),
        "machine": machine.describe(),
    }
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        bar = progress.add_task("the machine's limits", total=len(cases) * len(arguments.threads))
        before = machine.measure_limits(arguments.threads)
        results = []
        for threads in arguments.threads:
            messages = run_worker(job(arguments, cases, threads))
            about.update(next(messages))
            for case in cases:
                progress.update(bar, description=f"{case}, {at(threads)}")
                results.append((case, threads, next(messages)))
                progress.advance(bar)
            messages.close()
        progress.update(bar, description="the machine's limits again")
        after = machine.measure_limits(arguments.threads)
        progress.update(bar, description="measured")
    limits = {threads: before[threads].best_of(after[threads]) for threads in arguments.threads}
    rows = [
        report.make_row(case, threads, result, limits[threads]) for case, threads, result in results
    ]
    return about, limits, rows


def at(threads):
    """A number of threads, in words."""
    return f"{threads} thread{'s' if threads > 1 else ''}"


def job(arguments, cases, threads):
    """What a worker is told to do."""
    return {
        "cases": cases,
        "threads": threads,
        "seconds": arguments.seconds,
        "seed": arguments.seed,
        "library": arguments.library,
    }


def run_worker(work):
    """Starts a worker, and yields its messages.

    Raises:
      WorkerError: It found a problem, or ended before its work was done.
    """
    paths = [str(machine.ROOT), str(machine.ROOT / "python"), os.environ.get("PYTHONPATH")]
    environment = dict(
        os.environ,
        PYTHONPATH=os.pathsep.join(path for path in paths if path),
        # Without this there would be no stock kernel to compare with.
        BLOCKCELL_OVERRIDE="0",
        TF_CPP_MIN_LOG_LEVEL=os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"),
    )
    with tempfile.TemporaryFile("w+") as log, subprocess.Popen(
        [sys.executable, "-m", "bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        env=environment,
        universal_newlines=True,
    ) as worker:
        try:
            json.dump(work, worker.stdin)
            worker.stdin.close()
            for line in worker.stdout:
                message = json.loads(line)
                if "problem" in message:
                    raise WorkerError(message["problem"])
                yield message
            if worker.wait() != 0:
                log.seek(0)
                tail = "".join(log.readlines()[-20:])
                raise WorkerError(f"the measuring process ended ({worker.returncode}):\n{tail}")
        finally:
            worker.kill()


def write(folder, about, limits, rows, console):
    """Writes JSON and Markdown, named after what was measured."""
    minor = ".".join(about["versions"]["tensorflow"].split(".")[:2])
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"tf-{minor}-{about['isa']}"
    report.write_json(folder / (stem + ".json"), about, limits, rows)
    report.write_markdown(folder / (stem + ".md"), about, limits, rows)
    console.print(f"Written to {folder / stem}.json and .md", soft_wrap=True)


def shlex_join(words):
    """`shlex.join`, which Python 3.7 does not have."""
    return " ".join(map(shlex.quote, words))


if __name__ == "__main__":
    main()
