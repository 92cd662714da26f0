"""`blockcell compare`."""

import os
import sys
from pathlib import Path

import click

from blockcell.cli.console import CommandError, new_console, new_progress, say, table, writing
from blockcell.cli.options import (
    COUNT,
    Listed,
    batch_option,
    choose_weights,
    json_option,
    precision_option,
    quiet_option,
    report_option,
    target_option,
    time_option,
    weights_option,
    write_json,
)
from blockcell.precision import VARIABLE

_KINDS = (
    "a Keras file (.keras, .h5), the folder of a SavedModel, a graph (.pb, .pbtxt, .meta) or a "
    "Python program (.py)"
)
_ABOVE_0 = click.FloatRange(min=0.0, min_open=True)


@click.command("compare")
@click.option("-m", "is_module", is_flag=True, help="MODEL_OR_PROGRAM is the name of a module.")
@batch_option
@time_option
@target_option
@click.option(
    "--signature",
    default="serving_default",
    show_default=True,
    help="Signature of a SavedModel to call.",
)
@click.option(
    *("--inputs", "--data"),
    metavar="FILE",
    help="An .npz file with a model's inputs by name (default: random inputs).",
)
@click.option(
    "--threads",
    type=Listed(COUNT),
    metavar="N,...",
    help="Numbers of threads for a model (default: one thread per processor).",
)
@click.option(
    "--seconds",
    type=_ABOVE_0,
    default=5.0,
    show_default=True,
    help="How long to time the calls of a model.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of random numbers.")
@click.option(
    "--keras/--no-keras",
    default=True,
    help="Call blockcell.keras.enable() in a program (default: yes).",
)
@precision_option
@weights_option
@click.option("--library", metavar="FILE", help="The libblockcell.so to compare with.")
@click.option(
    "--check-ratio", type=_ABOVE_0, metavar="X", help="Fail if a step is not X times as fast."
)
@json_option
@report_option
@click.option("--html", metavar="FILE", help="Write an HTML page with charts.")
@quiet_option
@click.argument("target", metavar="MODEL_OR_PROGRAM")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(**options):
    """Compare a model or a program without and with the library: time, memory and results.

    MODEL_OR_PROGRAM is a Keras file (.keras, .h5), the folder of a SavedModel, a graph of
    TensorFlow 1.x (.pb, .pbtxt, .meta), or a Python program (.py). Calls of a model are timed in
    turns, with random inputs. A program is run twice, with the ARGUMENTS after --, and its
    steps are timed: batches of Keras, Session.run, and calls of a tf.function.

    With --weights int8 it also prints the error of each layer relative to float32, and how many
    predictions of a classifier change. Pass a sample of your data by --data.

    The exit code is 1 if results differ by more than rounding explains or a check fails, and 2 if
    the comparison could not be run.
    """
    choose_weights(options["weights"])  # For the processes that measure.
    from blockcell_tools.bench.run import circumstances
    from blockcell_tools.bench.workers import WorkerError
    from blockcell_tools.comparison import report
    from blockcell_tools.comparison.results import CompareError

    console = new_console(options["quiet"] or options["as_json"])
    target = options["target"]
    is_program = options["is_module"] or target.endswith(".py")
    if not options["is_module"] and not os.path.exists(target):
        raise CommandError(f"there is no file {target}")
    if options["arguments"] and not is_program:
        raise click.UsageError("only a program takes arguments.")
    try:
        with new_progress(console) as progress:
            found = (_program if is_program else _model)(options, progress)
    except (WorkerError, CompareError) as error:
        raise CommandError(f"{target}: {_reason(error)}") from error
    found.about.update(circumstances("blockcell"), use=_use(found, options))
    title = f"{Path(target).name or target}, without and with blockcell"
    if found.rows:
        console.print(table(title, report.COLUMNS, report.cells(found), report.TEXTS, report.NOTE))
    for line in report.lines(found):
        say(console, line)
    console.print(found.advice(), style="bold", soft_wrap=True, highlight=False)
    write_json(found.as_json(), options["as_json"], options["report"])
    if options["html"]:
        with writing(options["html"]):
            report.write_page(Path(options["html"]), title, found)
    sys.exit(0 if _passes(found, options["check_ratio"]) else 1)


def _model(options, progress):
    """Compares a model."""
    from blockcell_tools.comparison import models

    file = os.path.abspath(options["target"])
    if os.path.basename(file).startswith("saved_model.pb"):
        file = os.path.dirname(file)
    if models.kind_of(file) is None:
        raise CommandError(f"{options['target']} is not {_KINDS}")
    if options["precision"]:
        os.environ[VARIABLE] = options["precision"]  # For the processes that measure.
    inputs = os.path.abspath(options["inputs"]) if options["inputs"] else ""
    sizes = (options["batch"], options["time"])
    call = models.Call(file, *sizes, options["signature"], inputs, list(options["targets"]))
    threads = options["threads"] or [len(os.sched_getaffinity(0))]
    bar = progress.add_task("", total=100)

    def told(words, share):
        progress.update(bar, description=words, completed=round(100 * share))

    return models.measure(
        *(call, sorted(set(threads)), options["seconds"], options["seed"], options["library"]),
        told,
    )


def _program(options, progress):
    """Compares a program."""
    from blockcell_tools import hosting
    from blockcell_tools.comparison import programs

    bar = progress.add_task("", total=None)

    def told(words, steps, total):
        progress.update(bar, description=words, completed=steps, total=total)

    program = hosting.Program(options["target"], list(options["arguments"]), options["is_module"])
    names = ("keras", "precision", "library", "seed")
    return programs.measure(program, {name: options[name] for name in names}, told)


def _reason(error):
    """The reason in one line, if possible; of a process that died, its last line."""
    from blockcell_tools.comparison.results import CompareError

    text = str(error).strip()
    return text if isinstance(error, CompareError) else text.splitlines()[-1]


def _use(found, options):
    """How to use the library for this model or program."""
    from blockcell_tools.comparison import models

    level, weights = options["precision"], options["weights"]
    more = f', and blockcell.set_float32_matmul_precision("{level}")' if level else ""
    if found.kind == "program":
        words = f"--precision {level} " if level else ""
        words += f"--weights {weights} " if weights else ""
        keras = "" if options["keras"] else "--no-keras "
        return f"run: blockcell run {words}{keras}{options['target']}"
    in_int8 = weights not in (None, "float32")
    keep_x = ', keep_x="float32"' if weights == "int8_except_x" else ""
    calls = [f'blockcell.load(weights="int8"{keep_x})'] if in_int8 else []
    if found.kind == models.KERAS:
        calls.append("blockcell.keras.enable()")
    return f"call {' and '.join(calls) or 'blockcell.load()'}{more} before the model is loaded"


def _passes(found, least):
    """Whether all checks pass; says which do not."""
    slow = [row for row in found.rows if row.ratio < (least or 0.0)]
    for row in slow:
        print(f"below the ratio of {least}: {row.step}: {row.ratio:.2f}", file=sys.stderr)
    if not found.agrees:
        print(f"blockcell: the results differ: {found.worst.what}", file=sys.stderr)
    return not slow and found.agrees
