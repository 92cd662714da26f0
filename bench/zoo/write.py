"""Writes the MetaGraphs, in TensorFlow 1.15: `python -m bench.zoo.write`."""

import importlib
import sys

import tensorflow as tf

from bench.zoo.nets import MODELS, NETS, SIZES

LARGEST = 0.08
"""Of weights: the sums of hundreds of products stay where cells are not saturated."""


def enlarge():
    """Gives all models the sizes that are measured; returns the module that writes them."""
    sys.path.insert(0, str(MODELS))
    for name, sizes in SIZES.items():
        module = importlib.import_module(name)
        for constant, value in sizes.items():
            assert hasattr(module, constant), f"{name} has no {constant}"
            setattr(module, constant, value)
    return importlib.import_module("write")


def main():
    """Writes all of them, or those that the command line names."""
    models = enlarge()
    for net in NETS:
        if sys.argv[1:] and net.name not in sys.argv[1:]:
            continue
        with tf.Graph().as_default():
            if net.name in models.FROZEN:
                definition = models.frozen(models.FROZEN[net.name], LARGEST)
                message = models.without_variables(definition)
            else:
                message = models.meta_graph(models.META_GRAPHS[net.name], LARGEST)
        net.file.parent.mkdir(parents=True, exist_ok=True)
        net.file.write_bytes(message.SerializeToString())


if __name__ == "__main__":
    main()
