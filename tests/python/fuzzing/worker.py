"""A process that runs programs: `python -m fuzzing.worker`.

It says which TensorFlow it has, then reads requests from its input and answers each. A request is a
program and a list of settings; the answer has an outcome for each of them, and what was rewritten.
"""

import os
import sys
import traceback

import tensorflow as tf

import blockcell
from fuzzing import builder
from fuzzing.comparison import FAILED_PASS
from fuzzing.messages import receive, send
from fuzzing.programs import split

v1 = tf.compat.v1


def _config(setting):
    config = v1.ConfigProto(
        device_count={"CPU": 2},
        intra_op_parallelism_threads=1,
        inter_op_parallelism_threads=setting.threads or 2,
        use_per_session_threads=setting.threads is not None,
        operation_timeout_in_ms=setting.timeout,
    )
    rewrites = config.graph_options.rewrite_options
    rewrites.disable_meta_optimizer = not setting.optimized
    rewrites.min_graph_nodes = -1  # Small graphs, too.
    return config


def _outcome(built, program, setting):
    """The values of all runs, or the error of the first one that failed."""
    dtypes = {node["name"]: node["dtype"] for node in program["nodes"]}
    values = []
    with v1.Session(graph=built.graph, config=_config(setting)) as session:
        try:
            if built.initializers:
                session.run(built.initializers)
            for run in program["runs"]:
                feeds = {
                    t: builder.value(description, dtypes[split(t)[0]], setting.noise, setting.draw)
                    for t, description in run["feeds"].items()
                }
                values += _run(session, built, run, feeds)
        except tf.errors.OpError as error:
            return {"values": values, "error": type(error).__name__, "message": error.message}
    return {"values": values}


def _run(session, built, run, feeds):
    """The fetches of one run."""
    feeds = {built.tensor(t): array for t, array in feeds.items()}
    fetches = {t: built.tensor(t) for t in run["fetches"]}
    if run["stages"] is None:
        targets = [op for name in run["targets"] for op in built.operations(name)]
        values = session.run([fetches, targets], feeds)[0]
    else:
        values = {}
        handle = session.partial_run_setup(list(fetches.values()), list(feeds))
        for stage in run["stages"]:
            fed = [built.tensor(t) for t in stage["feeds"]]
            wanted = {t: fetches[t] for t in stage["fetches"]}
            values.update(session.partial_run(handle, wanted, {t: feeds[t] for t in fed}))
    return [values[t] for t in run["fetches"]]


def answer(program, settings):
    """Runs a program; see the module's documentation."""
    before, outcomes, built = blockcell.info(), [], {}
    for setting in settings:
        change = setting.noise, setting.draw
        if change not in built:
            built[change] = builder.built(program["nodes"], *change)
        outcomes.append(_outcome(built[change], program, setting))
    after = blockcell.info()
    if after["failed_passes"] > before["failed_passes"]:
        # The results are those of the graphs as they were.
        outcomes = [dict(outcomes[0], error=FAILED_PASS, message="see the log of the process")]
        outcomes *= len(settings)
    rewritten = {op: count - before["rewritten"][op] for op, count in after["rewritten"].items()}
    return {"outcomes": outcomes, "rewritten": rewritten}


def main():
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # What TensorFlow prints is no answer.
    blockcell.load()
    send(answers, tf.__version__)
    for program, settings in iter(lambda: receive(requests), None):
        try:
            send(answers, answer(program, settings))
        except Exception:  # A program that cannot be built is an error of the generator.
            send(answers, {"invalid": traceback.format_exc()})


if __name__ == "__main__":
    main()
