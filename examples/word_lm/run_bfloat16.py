"""Times training steps of the word model in float32 and in bfloat16, on stock kernels and on ours.

Four processes take turns with each graph: TensorFlow's kernels as they are, the same with
Grappler's option `auto_mixed_precision_onednn_bfloat16`, blockcell's kernels as they are, and these
at *medium* with that option. The exit codes are those of `run.py`.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import models  # noqa: E402
from common import sessions  # noqa: E402
from run import Job, finish, parsed, parser_of, plan_of  # noqa: E402
from training import Trainer  # noqa: E402
from turns import Contender  # noqa: E402

CELLS = [cell for cell in models.CELLS if "block" in cell]
"""Kinds of cell. Grappler puts casts into plain ones, which are then none that blockcell knows."""
LIMIT = 1e-2
"""Largest relative difference of losses from those in float32 that passes."""


class LowerTrainer(Trainer):
    """A `Trainer` in bfloat16: TensorFlow's products by Grappler, the library's at *medium*."""

    BFLOAT16 = True


def job_of(cell, size, options):
    """Returns the `Job` of a kind of cell and a size's name."""
    path, title = models.meta(cell, size), models.title(models.meta(cell, size))
    stock, ours = sessions.TENSORFLOW, sessions.LIBRARY
    ways = [
        ("stock", title, stock, Trainer, {}),
        ("stock-bf16", f"{title}: stock in bfloat16", stock, LowerTrainer, {"limit": LIMIT}),
        ("ours", f"{title}: blockcell", ours, Trainer, {}),
        ("ours-bf16", f"{title}: blockcell in bfloat16", ours, LowerTrainer, {"limit": LIMIT}),
    ]
    contenders = [
        Contender(f"bfloat16-{models.stem(path)}-{name}", its, loads, trainer, (path,), **limit)
        for name, its, loads, trainer, limit in ways
    ]
    return Job(f"{title}, bfloat16", plan_of(size, options), contenders)


def main():
    """Command line."""
    parser = parser_of(
        "Time training steps of word models in float32 and in bfloat16, on stock kernels and on"
        " blockcell's.",
        sizes=["small", "medium"],
        cells=CELLS,
        rounds=6,
    )
    options = parsed(parser)
    jobs = [job_of(cell, size, options) for size in options.sizes for cell in options.cells]
    return finish(options, jobs, "bfloat16")


if __name__ == "__main__":
    sys.exit(main())
