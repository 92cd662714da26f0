"""The log of the graph passes, and the switch of a session, for `graph_pass/test_log.py`."""

import tensorflow as tf

import blockcell
import rewrite
from helpers import stderr
from traps.net import Net, add_n

v1 = tf.compat.v1


def prepare():
    blockcell.load()


def _run(build, config):
    """What the passes say of a graph, and how many nodes they say that they rewrote."""
    with tf.Graph().as_default(), v1.Session(config=config) as session:
        net = Net()
        fetches = build(net)
        session.run(v1.global_variables_initializer())
        with stderr.captured() as written:
            result = rewrite.counted(lambda: rewrite.run(session, fetches, net.feeds))
    return {
        "lines": [line for line in written[0].splitlines() if line.startswith("blockcell:")],
        "rewritten": result["rewritten"],
        "values": result["values"],
    }


def _graph(net):
    """A sum of products; slices that overlap; and a sum over rows with nothing around it."""
    total = add_n(*[net.lstm().product() for _ in range(3)])
    cell = net.lstm()
    product = cell.transposed()
    slices = [tf.slice(product, [0, begin], [-1, 4]) for begin in (0, 2)]
    return [total, cell.bias()] + slices


def log():
    return _run(_graph, rewrite.config())


def off_for_a_session():
    config = rewrite.config()
    rewriter = config.graph_options.rewrite_options
    rewriter.custom_optimizers.add(name="blockcell").parameter_map["rewrite"].b = False
    return _run(_graph, config)


def on_for_a_session():
    config = rewrite.config()
    rewriter = config.graph_options.rewrite_options
    rewriter.custom_optimizers.add(name="blockcell").parameter_map["rewrite"].b = True
    return _run(_graph, config)
