"""What stands on the page, in this order."""

from typing import Callable, NamedTuple

from bench.figures import rows


class Section(NamedTuple):
    """A part of the page."""

    title: str
    files: str
    """A pattern of the files, in the folder that `make bench-figures` writes to."""
    reader: Callable
    target: str
    """What makes the files."""
    text: str
    """What is measured."""
    whole: bool = True
    """Whether the page has a table of all rows, not of means alone."""
    unit: str = "ms"
    scale: float = 1e3
    """Of the numbers of both sides: what they are shown in, and by what they are multiplied."""


SECTIONS = (
    Section(
        "Training steps",
        "steps-*/tf-*.json",
        rows.of_training,
        "bench-figures-steps",
        "The word model of Zaremba et al. (2014) with two layers, in graphs that TensorFlow 1.15 "
        "made, which are left as they are: whole training steps with and without the library.",
    ),
    Section(
        "Keras",
        "keras-*/tf-*.json",
        rows.of_training,
        "bench-figures-keras",
        "Epochs of a classifier, trained by `fit`, before and after `blockcell.keras.enable()`. "
        "Shapes are time, batch and units.",
    ),
    Section(
        "Inference with Keras",
        "predict/predict-*.json",
        rows.of_turns,
        "bench-figures-predict",
        "Models of a recurrent layer and a `Dense` one, before and after "
        "`blockcell.keras.enable()`: `predict` of an array of 32 batches, and `predict_on_batch`. "
        "Times are of a batch, with Keras's own work around the model. Shapes are time, batch, "
        "input size and units.",
    ),
    Section(
        "Inference",
        "inference/inference-*.json",
        rows.of_turns,
        "bench-figures-inference",
        "Frozen loops of TensorFlow 1.15, and a SavedModel of Keras 2 with an `LSTM` and a "
        "bidirectional `GRU` layer, which nobody has edited, with and without the library. Shapes "
        "are time, batch, input size and units.",
    ),
    Section(
        "Peers",
        "peers/peers-*.json",
        rows.of_peers,
        "bench-figures-peers",
        "One layer on a sequence, with the same weights: forward, with all gradients "
        "(forward+backward), and inference, where calls of ours are chained in one run of a "
        "session. Shapes are time, batch, and input and cell size.",
    ),
    Section(
        "Several clients at once",
        "clients/clients-*.json",
        rows.of_clients,
        "bench-figures-clients",
        "Inference of one layer, called by several threads of one process, each answer checked; "
        "TensorFlow by make_callable. Milliseconds by calls per second of all clients together, "
        "and those within which 99 of 100 calls were answered, which have no quartiles.",
    ),
    Section(
        "Networks made for cuDNN",
        "cudnn/cudnn-*.json",
        rows.of_turns,
        "bench-figures-cudnn",
        "The ops of cuDNN against the cells that TensorFlow 1.15 offers in their place, and "
        "against PyTorch; layers x directions. Shapes are time, batch, input size and units.",
    ),
    Section(
        "Single ops",
        "ops/tf-*.json",
        rows.of_ops,
        "bench-figures-ops",
        "TensorFlow's kernel and ours in one process. Shapes are batch, and input and cell size; "
        "those of sequences have the time before.",
    ),
    Section(
        "Random shapes",
        "random/tf-*.json",
        rows.of_ops,
        "bench-figures-random",
        "The same at shapes that are drawn at random, odd ones included.",
        whole=False,
    ),
    Section(
        "Memory of a training step",
        "ops/tf-*.json",
        rows.of_memory,
        "bench-figures-ops",
        "The most that the process had resident above what it had before, and the most that "
        "TensorFlow's allocator had given out. The ratio is how many times as much TensorFlow's "
        "kernels take.",
        unit="MiB",
        scale=2.0**-20,
    ),
)
"""Whole models first, single ops last."""
