"""Writes the models of this folder with TensorFlow 1.15: networks that people have, made small.

A file `NAME.pb.gz` is a frozen graph: variables are constants. Its inputs are placeholders, and its
outputs those of node `results`. A file `NAME.meta.gz` is a MetaGraph, as those in the folder
`graphs`: nothing is fed, `initialize` sets the variables, and `results` has the outputs.

    .venv-1.15/bin/python tests/python/graph_pass/models/write.py [NAME ...]
"""

import gzip
import sys
from pathlib import Path

import bilm
import numpy as np
import tagger
import tensorflow as tf
import zoneout

FOLDER = Path(__file__).resolve().parent
FROZEN = {"bilm": bilm.inference, "tagger": tagger.inference, "zoneout": zoneout.inference}


def numbers(low, high, shape, seed):
    return tf.constant(np.random.RandomState(seed).randint(low, high, shape), tf.int32)


def sentences():
    return numbers(0, bilm.WORDS, [3, 5], 1), tf.constant([5, 2, 4])


def bilm_training():
    return with_gradients(bilm.loss(*sentences()))


def bilm_keeps_state():
    _, _, mixture, updates = bilm.network(*sentences())
    return [mixture, *updates]


def tagger_training():
    loss = tagger.loss(
        numbers(0, tagger.WORDS, [3, 4], 1),
        numbers(0, tagger.CHARACTERS, [3, 4, 6], 2),
        numbers(1, 7, [3, 4], 3),
        tf.constant([4, 1, 3]),
        numbers(0, tagger.TAGS, [3, 4], 4),
    )
    return with_gradients(loss)


def with_gradients(loss):
    gradients = tf.gradients(loss, tf.trainable_variables())
    return [loss, *(tf.convert_to_tensor(gradient) for gradient in gradients)]


META_GRAPHS = {
    "bilm_training": bilm_training,
    "bilm_keeps_state": bilm_keeps_state,
    "tagger_training": tagger_training,
}


def values():
    """Assigns random values to all variables."""
    return [
        tf.assign(variable, tf.random_uniform(variable.shape, -0.6, 0.6, seed=k + 1))
        for k, variable in enumerate(tf.global_variables())
    ]


def frozen(build):
    """A graph whose variables are constants."""
    tf.identity_n(build(), name="results")
    graph = tf.get_default_graph()
    with tf.Session() as session:
        session.run(values())
        definition = graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(session, definition, ["results"])


def meta_graph(build):
    results = build()
    tf.group(*values(), name="initialize")
    tf.identity_n(results, name="results")
    return tf.train.export_meta_graph(strip_default_attrs=True)


def write(name):
    with tf.Graph().as_default():
        if name in FROZEN:
            message, ending = frozen(FROZEN[name]), ".pb.gz"
        else:
            message, ending = meta_graph(META_GRAPHS[name]), ".meta.gz"
        path = str(FOLDER / (name + ending))
        with open(path, "wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file:
            file.write(message.SerializeToString())


if __name__ == "__main__":
    for name in sys.argv[1:] or [*FROZEN, *META_GRAPHS]:
        write(name)
