"""The command line of the comparison for networks made for cuDNN."""

import importlib.util
import itertools
import sys

from bench.comparison import NOTE, Comparison, new_parser
from bench.cudnn import nets
from blockcell_tools.bench.shapes import sequence_shape

NEEDS = {"cells": "tensorflow_core", "torch": "torch"}
"""A module that each rival comes with; `tensorflow_core` is in TensorFlow 1.15 alone."""
SHAPES = ["20x20x200", "100x20x200", "35x20x650", "100x64x512"]
STACKS = [(1, 1), (2, 2)]


def main():
    """Runs the comparison."""
    parser = new_parser("bench.cudnn", __doc__, seconds=4.0)
    add = parser.add_argument
    works = [nets.FORWARD, nets.TRAINING]
    add("--modes", nargs="+", choices=["lstm", "gru"], default=["lstm", "gru"])
    add("--work", nargs="+", choices=works, default=works, help="default: both")
    add(
        "--sequences",
        nargs="+",
        type=sequence_shape,
        default=[sequence_shape(shape) for shape in SHAPES],
        metavar="TxBxC",
        help="time, batch and units, or TxBxDxC",
    )
    add("--rivals", nargs="+", choices=list(NEEDS), help="default: those that are installed")
    arguments = parser.parse_args()
    rivals = arguments.rivals or [name for name in NEEDS if importlib.util.find_spec(NEEDS[name])]
    if not rivals:
        sys.exit("bench.cudnn: neither TensorFlow 1.15 nor PyTorch is here")
    comparison = Comparison(
        program="bench.cudnn",
        title="Networks made for cuDNN",
        file=f"cudnn-{'-'.join(rivals)}",
        columns=("network", "work", "shape"),
        cells=lambda net, row: [f"{net.mode} {net.layers}x{net.directions}", net.work, net.shape],
        note=NOTE.format("call"),
    )
    wanted = [
        nets.Net(mode, work, *stack, *shape)
        for mode, work, stack, shape in itertools.product(
            arguments.modes, arguments.work, STACKS, arguments.sequences
        )
    ]
    comparison.run(arguments, wanted, rivals)


if __name__ == "__main__":
    main()
