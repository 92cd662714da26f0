"""Models that people have, small, for `graph_pass/test_models.py`: each function runs one.

It returns the outputs, of each batch where there are several, and how many nodes the library put
into the graph.
"""

import functools
import gzip
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
import rewrite

FOLDER = Path(__file__).resolve().parent.parent / "graph_pass" / "models"
SIZES = {"words_of_rows": 30, "characters_of_words": 20, "symbols_of_rows": 25}
WORD = 6  # The most characters of a word.
# The lengths of the rows of a batch, and whether one more step is padding in all rows.
BATCHES = {
    "one row": ([4], False),
    "rows of different lengths": ([3, 6, 5], True),
    "rows without a step": ([0, 5, 0], False),
    "one step": ([1], False),
    "nothing but empty rows": ([0, 0], True),
}
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def feeds(graph, lengths, padded):
    """Values for the placeholders that a graph has."""
    random = np.random.RandomState(len(lengths) + sum(lengths))
    shape = [len(lengths), max(lengths) + padded]
    of_words = random.randint(0, WORD + 1, shape) * (np.arange(shape[1]) < np.c_[lengths])
    values = {"lengths": np.array(lengths), "lengths_of_words": of_words}
    for name, size in SIZES.items():
        inner = [WORD] if name == "characters_of_words" else []
        values[name] = random.randint(0, size, shape + inner)
    names = {node.name for node in graph.get_operations()}
    return {name + ":0": value for name, value in values.items() if name in names}


def frozen(path):
    """What a frozen graph computes of each batch, one after the other."""
    with gzip.open(str(path)) as file:
        definition = v1.GraphDef.FromString(file.read())
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(definition, name="")
        results = graph.get_operation_by_name("results").outputs
        with v1.Session(config=rewrite.config()) as session:

            def run():
                batches = [session.run(results, feeds(graph, *batch)) for batch in BATCHES.values()]
                return {"values": [rewrite.as_lists(batch) for batch in batches]}

            return rewrite.counted(run)


def meta_graph(path):
    result = rewrite.meta_graph(path, optimized=True)
    return {"values": [result["values"]], "rewritten": result["rewritten"]}


for _ending, _run in ((".pb.gz", frozen), (".meta.gz", meta_graph)):
    for _path in FOLDER.glob("*" + _ending):
        globals()[_path.name[: -len(_ending)]] = functools.partial(_run, _path)
