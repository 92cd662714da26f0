"""`blockcell bench --model`."""

import os

from blockcell.cli.console import CommandError, new_console, say, table, waiting, writing
from blockcell_tools.bench import models
from blockcell_tools.bench.run import circumstances
from blockcell_tools.bench.workers import WorkerError

_COLUMNS = ("threads", "ms: TensorFlow", "ms: blockcell", "times as fast", "quartiles", "error")
_NOTE = (
    "Medians of one call. Times as fast: the median of the rounds' ratios. Error: the largest "
    "difference of the results, relative to the largest element."
)


def run(wanted):
    """Measures a model before and after; returns whether no check failed."""
    console = new_console(wanted.quiet)
    file = os.path.abspath(wanted.model)
    if not os.path.exists(file):
        raise CommandError(f"there is no file {wanted.model}")
    inputs = os.path.abspath(wanted.inputs) if wanted.inputs else ""
    call = models.Call(file, wanted.batch, wanted.time, wanted.signature, inputs)
    measure = (call, wanted.threads, wanted.seconds, wanted.seed, wanted.library)
    try:
        with waiting(console, "measuring"):
            found = models.measure(*measure)
    except WorkerError as error:
        raise CommandError(f"{wanted.model}: {_last_line(error)}") from error
    found.about.update(circumstances("blockcell", "bench"))
    console.print(table(wanted.model, _COLUMNS, [_cells(row) for row in found.rows], 0, _NOTE))
    for line in _what_ran(found):
        say(console, line)
    with writing(wanted.output):
        written = models.write(wanted.output, found)
    console.print(f"Written to {os.path.relpath(written)}", soft_wrap=True)
    slow = [row for row in found.rows if row.ratio < (wanted.check_ratio or 0.0)]
    for row in slow:
        print(f"below the ratio of {wanted.check_ratio}: {row.threads} threads: {row.ratio:.2f}")
    return not slow


def _last_line(error):
    """What went wrong; a process that died tells it at its end."""
    return str(error).strip().splitlines()[-1]


def _cells(row):
    low, high = row.quartiles
    times = (f"{seconds * 1e3:.3g}" for seconds in (row.tensorflow_seconds, row.ours_seconds))
    return [
        str(row.threads),
        *times,
        f"{row.ratio:.2f}",
        f"{low:.2f} to {high:.2f}",
        f"{row.error:.0e}",
    ]


def _what_ran(found):
    """Which kernels a call runs, and which layers stay on Keras's path."""
    if found.ran:
        ran = ", ".join(f"{op} {times}" for op, times in sorted(found.ran.items()))
        yield f"Kernels in a call: {ran}."
    else:
        yield "No kernel of blockcell runs in a call."
    for layer, path, reason in found.layers:
        if path != "blockcell":
            yield f"Not on blockcell: {layer}: {reason}"
