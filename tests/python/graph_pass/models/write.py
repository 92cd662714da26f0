"""Writes the models of this folder with TensorFlow 1.15: networks that people have, made small.

A file `NAME.pb.gz` is a frozen graph: variables are constants. A file `NAME.meta.gz` is a
MetaGraph, as those in the folder `graphs`: `initialize` sets the variables. The node `results` has
the outputs of both, and nothing needs to be fed.

    .venv-1.15/bin/python tests/python/graph_pass/models/write.py [NAME ...]
"""

import gzip
import sys
from pathlib import Path

import actor
import bilm
import crnn
import impala
import interest
import lm_1b
import music
import sketch
import speech
import tagger
import tensorflow as tf
import translation
import zoneout

FOLDER = Path(__file__).resolve().parent
FROZEN = {"bilm": bilm.inference, "tagger": tagger.inference, "zoneout": zoneout.inference}


def training(loss):
    """A function that makes the graph of a loss and of its gradients."""

    def build():
        value = loss()
        gradients = tf.gradients(value, tf.trainable_variables())
        return [value, *(tf.convert_to_tensor(gradient) for gradient in gradients)]

    return build


META_GRAPHS = {
    "bilm_training": training(bilm.loss),
    "bilm_keeps_state": bilm.keeps_state,
    "tagger_training": training(tagger.loss),
    "sketch": sketch.inference,
    "sketch_training": training(sketch.loss),
    "sketch_normalized_training": training(sketch.normalized_loss),
    "actor": actor.inference,
    "actor_training": training(actor.loss),
    "impala": impala.inference,
    "impala_training": training(impala.loss),
    "impala_block_training": training(impala.block_loss),
    "speech_old": speech.old_inference,
    "speech_old_training": training(speech.old_loss),
    "speech_plain": speech.plain_inference,
    "speech_new": speech.new_inference,
    "speech_new_training": training(speech.new_loss),
    "crnn": crnn.inference,
    "crnn_training": training(crnn.loss),
    "lm_1b": lm_1b.inference,
    "lm_1b_training": training(lm_1b.loss),
    "interest": interest.inference,
    "interest_training": training(interest.loss),
    "translation": translation.inference,
    "translation_training": training(translation.loss),
    "music": music.inference,
    "music_training": training(music.loss),
    "zoneout_training": training(zoneout.loss),
}


def values(largest=0.6):
    """Assigns random values to all variables."""
    return [
        tf.assign(variable, tf.random_uniform(variable.shape, -largest, largest, seed=k + 1))
        for k, variable in enumerate(tf.global_variables())
    ]


def frozen(build, largest=0.6):
    """A graph whose variables are constants."""
    tf.identity_n(build(), name="results")
    graph = tf.get_default_graph()
    with tf.Session() as session:
        session.run(values(largest))
        definition = graph.as_graph_def()
        return tf.graph_util.convert_variables_to_constants(session, definition, ["results"])


def without_variables(definition):
    """The MetaGraph of a frozen graph."""
    with tf.Graph().as_default():
        tf.import_graph_def(definition, name="")
        tf.no_op("initialize")
        return tf.train.export_meta_graph(strip_default_attrs=True)


def meta_graph(build, largest=0.6):
    results = build()
    tf.group(*values(largest), name="initialize")
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
