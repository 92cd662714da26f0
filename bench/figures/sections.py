"""The sections of the page, in their order."""

from typing import Callable, NamedTuple

from bench.figures import rows


class Section(NamedTuple):
    """A part of the page."""

    title: str
    files: str
    """A pattern for the files, in the folder that `make bench-figures` writes."""
    reader: Callable
    target: str
    """The target that writes the files."""
    text: str
    """What is measured."""
    whole: bool = True
    """Whether the page has a table of all rows, not only of means."""
    unit: str = "ms"
    scale: float = 1e3
    """The unit of the numbers of both sides, and the factor by which they are multiplied."""


SECTIONS = (
    Section(
        "Training steps",
        "steps-*/tf-*.json",
        rows.of_training,
        "bench-figures-steps",
        "Whole training steps with and without the library: the word model of Zaremba et al. "
        "(2014) with two layers, in unchanged graphs that TensorFlow 1.15 wrote.",
    ),
    Section(
        "Keras",
        "keras-*/tf-*.json",
        rows.of_training,
        "bench-figures-keras",
        "Epochs of a classifier, trained with `fit`, before and after `blockcell.keras.enable()`. "
        "Shapes are time, batch and units.",
    ),
    Section(
        "Inference with Keras",
        "predict/predict-*.json",
        rows.of_turns,
        "bench-figures-predict",
        "Models with a recurrent layer and a `Dense` layer, before and after "
        "`blockcell.keras.enable()`: `predict` with an array of 32 batches, and "
        "`predict_on_batch`. Times are per batch, and include Keras's own work around the model. "
        "Shapes are time, batch, input size and units.",
    ),
    Section(
        "Inference",
        "inference/inference-*.json",
        rows.of_turns,
        "bench-figures-inference",
        "Frozen loops of TensorFlow 1.15, and an unchanged SavedModel of Keras 2 with an `LSTM` "
        "and a bidirectional `GRU` layer, with and without the library. Shapes are time, batch, "
        "input size and units.",
    ),
    Section(
        "Peers",
        "peers/peers-*.json",
        rows.of_peers,
        "bench-figures-peers",
        "One layer on a sequence, with the same weights: forward, with all gradients "
        "(forward+backward), and inference, where several calls of blockcell's op are chained in "
        "one run of a session. Shapes are time, batch, and input and cell size.",
    ),
    Section(
        "Several clients at once",
        "clients/clients-*.json",
        rows.of_clients,
        "bench-figures-clients",
        "Inference of one layer, called by several threads of one process, with each answer "
        "checked; TensorFlow is called through make_callable. Milliseconds per call are computed "
        "from the calls per second of all clients together. p99 is the time within which 99 of "
        "100 calls were answered, and has no quartiles.",
    ),
    Section(
        "Networks made for cuDNN",
        "cudnn/cudnn-*.json",
        rows.of_turns,
        "bench-figures-cudnn",
        "The ops of cuDNN compared with the cells that TensorFlow 1.15 provides for CPUs, and "
        "with PyTorch; layers x directions. Shapes are time, batch, input size and units.",
    ),
    Section(
        "Single ops",
        "ops/tf-*.json",
        rows.of_ops,
        "bench-figures-ops",
        "TensorFlow's kernel and blockcell's in one process. Shapes are batch, and input and cell "
        "size; those of sequences begin with time.",
    ),
    Section(
        "Random shapes",
        "random/tf-*.json",
        rows.of_ops,
        "bench-figures-random",
        "The same with random shapes, including odd sizes.",
        whole=False,
    ),
    Section(
        "Memory of a training step",
        "ops/tf-*.json",
        rows.of_memory,
        "bench-figures-ops",
        "The peak of the process's resident memory above its initial value, and the peak of "
        "TensorFlow's allocator. The ratio is the memory with TensorFlow's kernels divided by "
        "that with blockcell's.",
        unit="MiB",
        scale=2.0**-20,
    ),
)
"""Whole models first, single ops last."""
