"""Runs a frozen graph of TensorFlow 1.15 without the library and with it, without its package.

    python3 infer.py libblockcell.so basic_lstm_cell.meta

For any Python that TensorFlow 1.15 has, such as the 3.6 of its image. The exit code is 1 if the
results differ, or if nothing has run on the library's kernels.
"""

import json
import sys
import time

import numpy as np
import tensorflow as tf

CALLS = 10


def frozen(meta_graph):
    """The part of a training graph that computes the loss, with weights as constants."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.train.import_meta_graph(meta_graph)
        session.run(tf.get_collection("char_lm/init_op"))
        return tf.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["loss"])


def results(graph_def, fed):
    """The loss, and the seconds of a call: the least of some."""
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        shapes = {name: graph.get_tensor_by_name(name).shape.as_list() for name in fed}
        feeds = {name: fed[name](shape) for name, shape in shapes.items()}
        seconds = []
        for _ in range(CALLS):
            start = time.time()
            loss = session.run("loss:0", feeds)
            seconds.append(time.time() - start)
    return loss, min(seconds)


def main():
    """Compares."""
    library, meta_graph = sys.argv[1:]
    graph_def = frozen(meta_graph)
    fed = {
        "inputs:0": lambda shape: np.random.RandomState(1).randint(0, 2, shape),
        "targets:0": lambda shape: np.random.RandomState(2).randint(0, 2, shape),
    }
    without, seconds_without = results(graph_def, fed)
    ops = tf.load_op_library(library)
    with_library, seconds_with = results(graph_def, fed)
    with tf.Session() as session:
        info = json.loads(session.run(ops.blockcell_info()).decode())
    runs = {op: count for op, count in sorted(info["runs"].items()) if count}
    print(f"without: loss {without:.6f}, {1e3 * seconds_without:.1f} ms")
    print(f"with:    loss {with_library:.6f}, {1e3 * seconds_with:.1f} ms")
    print(f"kernels that have run: {runs}")
    sys.exit(0 if runs and abs(without - with_library) < 1e-5 else 1)


if __name__ == "__main__":
    main()
