"""`partial_run`: a first stage fetches what does not depend on what the second one feeds.

Whoever waits for the second stage without need hangs: the session's timeout makes that an error.
"""

import tensorflow as tf

import rewrite
from traps.net import BATCH, CELL, INPUT, ROWS, add_n, after, register, run_graph

v1 = tf.compat.v1


class Later:
    """A tensor that is fed in the second stage, and what waits for it."""

    def __init__(self, net):
        self.tensor = v1.placeholder(tf.float32, [ROWS, 4 * CELL])
        self.value = net.values(ROWS, 4 * CELL)

    def after(self, build):
        """What `build` makes; it waits for the tensor by control edges."""
        return after([self.tensor.op], build)


def in_stages(build):
    """Registers a function of a net and of what is fed later.

    It returns what the first stage fetches, and what the second one does.
    """

    def built(net):
        later = Later(net)
        return later, build(net, later)

    def runs():
        return [run_graph(built, _run, optimized) for optimized in (True, False)]

    register(build.__name__, runs)
    return build


def _run(session, net, built):
    later, (first, second) = built
    handle = session.partial_run_setup(first + second, [*net.feeds, later.tensor])
    values = session.partial_run(handle, first, net.feeds)
    values += session.partial_run(handle, second, {later.tensor: later.value})
    return {"values": rewrite.as_lists(values), "ops": {}}


def _slices(product):
    return [tf.slice(product, [0, 0], [-1, INPUT]), tf.slice(product, [0, INPUT], [-1, CELL])]


@in_stages
def slice_waits_for_a_feed(net, later):
    product = net.lstm().transposed()
    return _slices(product)[:1], later.after(lambda: _slices(product)[1:])


@in_stages
def constant_of_a_slice_waits_for_a_feed(net, later):
    product = net.lstm().transposed()
    begin = later.after(lambda: tf.constant([0, INPUT]))
    return _slices(product)[:1], [tf.slice(product, begin, [-1, CELL])]


@in_stages
def both_slices_wait_for_a_feed(net, later):
    """Something that waits for the product is fetched first."""
    product = net.lstm().transposed()
    waits = after([product.op], lambda: tf.sin(net.tensor(1)))
    return [waits], later.after(lambda: _slices(product))


@in_stages
def term_is_fed_later(net, later):
    first = net.lstm().product()
    return [tf.sin(first)], [add_n(first, later.tensor, net.lstm().product())]


@in_stages
def cell_of_a_term_waits_for_a_feed(net, later):
    first, bias = net.lstm().product(), net.lstm().bias()
    cell = net.lstm(w=later.tensor)
    totals = [add_n(first, cell.product()), add_n(cell.bias(), bias)]
    return [tf.sin(first), tf.sin(bias)], totals


@in_stages
def sum_waits_for_a_feed(net, later):
    """What waits for a product by a control edge is fetched first."""
    products = [net.lstm().product() for _ in range(2)]
    waits = after([products[0].op], lambda: tf.sin(net.tensor(1)))
    return [waits], [later.after(lambda: add_n(*products))]


@in_stages
def product_waits_for_a_feed(net, later):
    """Its concat is fetched first."""
    cell = net.lstm()
    left = cell.left()
    total = add_n(later.after(lambda: cell.product(left)), net.lstm().product())
    return [tf.sin(left)], [total]


@in_stages
def outer_sum_waits_for_a_feed(net, later):
    inner = add_n(net.lstm().product(), net.lstm().product())
    return [tf.sin(inner)], [add_n(inner, later.tensor, net.lstm().product())]


@in_stages
def inner_sum_is_fetched(net, later):
    inner = tf.raw_ops.Add(x=net.lstm().product(), y=net.lstm().product())
    return [inner], [tf.raw_ops.Add(x=inner, y=later.tensor)]


@in_stages
def part_of_a_concat_waits_for_a_feed(net, later):
    """The cell has its own state, the product one that comes later."""
    cell = net.lstm(h_prev=net.tensor(BATCH, CELL))
    state = later.after(lambda: tf.identity(cell.h_prev))
    product = cell.product(tf.concat([cell.x, state], 1))
    return [cell.gate], [add_n(product, net.lstm().product())]
