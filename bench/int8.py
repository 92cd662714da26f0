"""The error of int8 weights in newly trained models and in published architectures.

`python -m bench.int8 --library FILE` trains small Keras models on text of the standard library, and
runs `blockcell compare --weights int8` with text that was not in their training data. It does the
same with the graphs of `bench.zoo.write`, and writes the table of docs/int8.md.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from bench.markers import replaced
from bench.zoo import nets
from blockcell_tools.bench.report import markdown_table
from blockcell_tools.bench.workers import environment_of

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path[:0] = [str(EXAMPLES), str(EXAMPLES / "keras_classifier")]
PAGE = Path("docs") / "int8.md"
STEPS, ROWS, TIME, UNITS = 600, 64, 25, 256
"""Training steps of a language model, its batch, its window, and the units of its layer."""
PIECES, EPOCHS = 4096, 3
"""Pieces of text that a classifier learns from, and how often."""
SAMPLE = 1024
"""Rows that models are compared with."""


def language_model(cell):
    """Trains a model of the next character; returns it and text to evaluate it."""
    import tensorflow as tf
    from common import standard_library

    text = np.frombuffer(standard_library.sources((STEPS + SAMPLE) * ROWS * TIME), np.uint8)
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([TIME], name="x"),
            layers.Embedding(256, 128),
            getattr(layers, cell)(UNITS, return_sequences=True, name=cell.lower()),
            layers.Dense(256, activation="softmax"),
        ]
    )
    model.compile(tf.keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy")
    length = STEPS * ROWS * TIME
    for inputs, targets in standard_library.windows(text[: length + ROWS], ROWS, TIME):
        model.train_on_batch(inputs, targets)
    unseen = text[length : length + SAMPLE * TIME]
    return model, unseen.reshape(-1, TIME).astype(np.float32)


def classifier(cell):
    """Trains the classifier of `examples/keras_classifier`; returns it, and pieces for it."""
    import classifier as example
    import data
    import tensorflow as tf

    pieces = data.standard_library(100, PIECES, SAMPLE)
    model = example.model(pieces, cell, 128)
    model.fit(*pieces.train, batch_size=32, epochs=EPOCHS, verbose=0)
    x = tf.keras.Input([100], name="x")
    whole = tf.keras.Model(x, tf.keras.layers.Softmax()(model(x)))
    return whole, pieces.test.inputs.astype(np.float32)


MODELS = {
    "character model, LSTM of 256": lambda: language_model("LSTM"),
    "character model, GRU of 256": lambda: language_model("GRU"),
    "text classifier, LSTM of 128": lambda: classifier("LSTM"),
    "text classifier, GRU of 128": lambda: classifier("GRU"),
}


def freeze(net, file, inputs):
    """Writes a published architecture with its first weights, and inputs for it.

    Returns:
      False if the graph keeps states, too.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    definition = v1.MetaGraphDef.FromString(net.file.read_bytes())
    with tf.Graph().as_default() as graph, v1.Session() as session:
        v1.train.import_meta_graph(definition)
        session.run("initialize")
        convert = v1.graph_util.convert_variables_to_constants
        made = convert(session, graph.as_graph_def(), ["results"])
        given = [node for node in made.node if node.op == "PlaceholderWithDefault"]
        np.savez(str(inputs), **session.run({node.name: node.name + ":0" for node in given}))
    if any(node.op.startswith("Assign") for node in made.node):
        return False
    for node in given:  # Defaults that nobody feeds are constants, and TensorFlow folds them.
        node.op = "Placeholder"
        del node.input[:]
    file.write_bytes(made.SerializeToString())
    return True


def compared(file, library, *words):
    """What `blockcell compare --weights int8` reports of a file; None if nothing is in int8."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "blockcell", "compare", str(file), "--quiet"]
        command += ["--weights", "int8", "--threads", "1", "--seconds", "1", "--library", library]
        command += ["--report", str(report), *words]
        # 1 tells that numbers differ by more than the limit: the table shows by how much.
        if subprocess.run(command, env=environment_of(), check=False).returncode not in (0, 1):
            sys.exit(f"{file} could not be compared")
        found = json.loads(report.read_text(encoding="utf-8"))
    return found if found["layers"] else None


def cells(found):
    """The errors, as the table has them."""
    layers = found["layers"].values()
    of_layers = [max(one[key] for one in layers) for key in ("largest", "mean")]
    [output] = found["differences"]
    numbers = [*of_layers, output["largest"], output["mean"]]
    answers = "; ".join(f"{one['changed']:,} of {one['of']:,}" for one in found["answers"])
    return [str(len(layers)), *(f"{number:.1e}" for number in numbers), answers]


HEADS = (
    *("model", "int8 layers", "layers: largest error", "mean", "outputs: largest error", "mean"),
    "changed predictions",
)


def main():
    """Writes the table."""
    import tensorflow as tf

    parser = argparse.ArgumentParser(prog="python -m bench.int8", description=__doc__)
    parser.add_argument("--library", required=True, help="The libblockcell.so.")
    library = str(Path(parser.parse_args().library).resolve())
    rows, about = [], None
    tf.keras.utils.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        for words, make in MODELS.items():
            model, sample = make()
            file, arrays = Path(folder) / "model.keras", Path(folder) / "sample.npz"
            model.save(str(file))
            np.savez(str(arrays), x=sample)
            about = compared(file, library, "--data", str(arrays))
            rows.append([words, *cells(about)])
        for net in nets.NETS:
            file = Path(folder) / "graph.pb"
            if net.work == nets.INFERENCE and freeze(net, file, arrays):
                words = ("--target", "results", "--data", str(arrays))
                found = compared(file, library, *words)
                rows.append([net.words, *(cells(found) if found else ["none", *[""] * 5])])
    where = (
        f"Measured by `make bench-int8`: {about['date']}, {about['machine']['cpu']}, instruction "
        f"set {about['isa']}, TensorFlow {about['versions']['tensorflow']}. Errors are relative to "
        "the largest element in float32. Trained models read text that was not in their training "
        "data; the graphs of published architectures have untrained weights."
    )
    text = PAGE.read_text(encoding="utf-8")
    part = f"{where}\n\n{markdown_table(HEADS, rows, 1)}"
    PAGE.write_text(replaced(text, "accuracy", part), encoding="utf-8")


if __name__ == "__main__":
    main()
