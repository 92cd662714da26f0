"""Deep and large graphs. The threads that run them have small stacks, as those of Java have."""

import functools
import threading

import tensorflow as tf

import rewrite
from helpers.sampling import WHOLE
from traps.net import CELL, ROWS, SECONDS, add_n, register, run_graph

STACK = 512 * 1024
SUMS, PRODUCTS = 3000, 500
NODES = 100000 if WHOLE else 10000
"""TensorFlow takes 20 s for the larger number."""
GRAPHS = {}
"""Functions that build the graphs, by their names."""
v1 = tf.compat.v1


def in_thread(function):
    """The result of a function that runs in a thread with a small stack."""
    results, before = [], threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=lambda: results.append(function()), daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join(20 * SECONDS)
    assert results, "the thread ended with an error, or did not end"
    return results[0]


def deep(build, name, both=(True, False)):
    GRAPHS[name] = build

    def run(session, net, fetches):
        return in_thread(
            lambda: {"values": rewrite.as_lists(session.run(fetches, net.feeds)), "ops": {}}
        )

    register(name, lambda: [run_graph(build, run, optimized) for optimized in both])


def add(left, right):
    return tf.raw_ops.Add(x=left, y=right)


def chain(tensors, plus):
    return functools.reduce(plus, tensors)


def balanced(tensors, plus):
    while len(tensors) > 1:
        pairs = list(zip(tensors[::2], tensors[1::2]))
        tensors = [plus(*pair) for pair in pairs] + tensors[2 * len(pairs) :]
    return tensors[0]


def one_product(net, shape, plus):
    """A sum of one product and many tensors of known shape."""
    cell, w = net.lstm(), tf.identity(net.weights())
    return [shape([cell.product()] + [w] * SUMS, plus)]


def many_products(net, shape, plus):
    """A sum of products alone, of the same two tensors."""
    cell = net.lstm()
    left = cell.left()
    return [shape([cell.product(left) for _ in range(PRODUCTS)], plus)]


for _shape in (chain, balanced):
    for _plus in (add, add_n):
        deep(
            functools.partial(one_product, shape=_shape, plus=_plus),
            f"{_shape.__name__}_of_{_plus.__name__}",
        )
deep(functools.partial(many_products, shape=chain, plus=add_n), "chain_of_products")
deep(functools.partial(many_products, shape=balanced, plus=add), "tree_of_products")


def many_nodes(tensor, count):
    """A tensor after very many operations, one after the other."""
    definition = v1.GraphDef()
    before = "start"
    for k in range(count):
        node = definition.node.add(name=f"node_{k}", op="Neg", input=[before])
        node.attr["T"].type = tf.float32.as_datatype_enum
        before = node.name
    (end,) = tf.import_graph_def(definition, {"start:0": tensor}, [before + ":0"])
    return end


def large_graph_without_cells(net):
    return [many_nodes(net.tensor(ROWS, 4 * CELL), NODES)]


def large_graph_with_a_cell(net):
    """What comes before a cell, and after its products."""
    cell = net.lstm(many_nodes(net.weights(), NODES // 2))
    return [many_nodes(add_n(cell.product(), net.lstm().product()), NODES // 2)]


for _build in (large_graph_without_cells, large_graph_with_a_cell):
    deep(_build, _build.__name__, [False])  # TensorFlow's optimizers would take minutes.
