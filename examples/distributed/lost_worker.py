"""Loses one of the workers of MultiWorkerMirroredStrategy, and goes on from a checkpoint.

The workers train the first half of the steps, and the first one writes a checkpoint. Then the last
one is killed in the midst of a step. The first one has to say so, instead of waiting for ever. New
workers read the checkpoint, and train the other half. Exit code 0 means that the weights are those
of a training in one process that nothing interrupted, 1 that they are not.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import cluster  # noqa: E402
import mirrored  # noqa: E402
from common.workers import WorkerError  # noqa: E402


def lose_worker(options, windows, checkpoint):
    """Trains, writes a checkpoint and kills the last worker.

    Returns:
      What the first worker has said then.
    """
    half = len(windows) // 2
    with cluster.Cluster(options.output, mirrored.SECONDS) as processes:
        workers = mirrored.start(processes, options, options.workers)
        processes.ask(workers, "train", windows[:half])
        processes.ask(workers[:1], "save", checkpoint)
        # So long that the others are in the midst of it.
        workers[0].send("train", windows[half:] * 100)
        for worker in workers[1:-1]:
            worker.send("train", windows[half:] * 100)
        workers[-1].kill()
        try:
            workers[0].receive(mirrored.SECONDS)
        except WorkerError as error:
            return str(error).splitlines()[0]
    raise WorkerError("the worker 0 has trained on without the other")


def resume(options, windows, checkpoint):
    """Trains the other half on new workers; returns the losses and weights of the first one."""
    half = len(windows) // 2
    with cluster.Cluster(options.output, mirrored.SECONDS) as processes:
        workers = mirrored.start(processes, options, options.workers)
        processes.ask(workers, "restore", checkpoint)
        return processes.ask(workers, "train", windows[half:])[0]


def main():
    """Command line."""
    options = mirrored.arguments("Kill one of several workers, and resume from a checkpoint.")
    if options.workers < 2:
        sys.exit("lost_worker.py: --workers must be at least 2")
    windows = mirrored.windows_of(options)
    checkpoint = str((options.output / "checkpoint").resolve())
    try:
        ((losses, weights),) = mirrored.train(options, windows, 0)
        said = lose_worker(options, windows, checkpoint)
        their_losses, their_weights = resume(options, windows, checkpoint)
    except WorkerError as error:
        print(f"FAILED {error}")
        return 1
    print(f"the other worker said: {said[:300]}")
    difference = cluster.largest_difference(weights, their_weights)
    print(
        f"loss {losses[-1]:.4f} without interruption, {their_losses[-1]:.4f} after it; largest "
        f"relative difference of the weights: {difference:.1e}"
    )
    good = difference <= options.tolerance
    print("the same training" if good else "FAILED: not the same training")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
