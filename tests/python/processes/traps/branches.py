"""Parts of a graph that are dead, because they belong to the side of a `Switch` not taken.

A node is dead if any input is, data or control; but `Merge` needs only one that is not. Each graph
runs with the interesting side dead and with the same side live.
"""

import functools

import tensorflow as tf

from traps.net import BATCH, CELL, INPUT, ROWS, add_n, after, trap

v1 = tf.compat.v1


class Sides:
    """The two sides of a `Switch`: tensors that other nodes may wait for."""

    def __init__(self, net, taken):
        pred = v1.placeholder(tf.bool)
        net.feeds[pred] = taken
        self._pred = pred
        switch = tf.raw_ops.Switch(data=tf.constant(1.0), pred=pred)
        self.this, self.other = (
            tf.identity(side) for side in (switch.output_true, switch.output_false)
        )

    def on(self, build):
        """What `build` makes, on this side by a control edge."""
        return after([self.this.op], build)

    def data(self, tensor):
        """A tensor that is on this side itself."""
        return tf.raw_ops.Switch(data=tensor, pred=self._pred).output_true

    def merge(self, tensor):
        """A tensor of this side, or a number if that is dead; and which of the two it is."""
        return merge(tensor, self.other)


def merge(*tensors):
    """The tensor that is not dead, and which one it is, counted from 1."""
    merged = tf.raw_ops.Merge(inputs=tensors)
    return [merged.output, merged.value_index + 1]


def branches(build):
    """Registers a graph twice: this side is live, or dead."""
    for taken in (True, False):
        name = f"{build.__name__}_{'live' if taken else 'dead'}"
        trap(functools.partial(_build, build=build, taken=taken), name)
    return build


def _build(net, build, taken):
    return build(net, Sides(net, taken))


def _x(product):
    return tf.slice(product, [0, 0], [-1, INPUT])


def _h_prev(product):
    return tf.slice(product, [0, INPUT], [-1, CELL])


@branches
def one_slice(net, sides):
    product = net.lstm().transposed()
    return [_x(product), *sides.merge(sides.on(lambda: _h_prev(product)))]


@branches
def one_slice_by_its_constant(net, sides):
    product = net.lstm().transposed()
    begin = sides.on(lambda: tf.constant([0, INPUT]))
    return [_x(product), *sides.merge(tf.slice(product, begin, [-1, CELL]))]


@branches
def slices_of_both_sides(net, sides):
    product = net.lstm().transposed()
    this = sides.on(lambda: _x(product))
    other = after([sides.other.op], lambda: _h_prev(product))
    return merge(this, other)


@branches
def both_slices(net, sides):
    product = net.lstm().transposed()
    slices = sides.on(lambda: [_x(product), _h_prev(product)])
    return [output for part in slices for output in sides.merge(part)]


@branches
def both_slices_while_something_waits_for_the_product(net, sides):
    product = net.lstm().transposed()
    slices = sides.on(lambda: [_x(product), _h_prev(product)])
    waits = after([product.op], lambda: tf.sin(net.tensor(1)))
    return [output for part in slices for output in sides.merge(part)] + [waits]


@branches
def product_and_slices(net, sides):
    """A branch as a cond makes it: the cell, the product and the slices are on one side."""
    cell = net.lstm(w=sides.data(net.weights()))
    product = cell.transposed()
    return [output for part in (_x(product), _h_prev(product)) for output in sides.merge(part)]


@branches
def product_by_a_control_edge(net, sides):
    product = sides.on(net.lstm().transposed)
    return [output for part in (_x(product), _h_prev(product)) for output in sides.merge(part)]


@branches
def product_of_a_sum(net, sides):
    product = sides.on(net.lstm().product)
    return sides.merge(add_n(product, net.lstm().product()))


@branches
def product_of_a_sum_for_others_too(net, sides):
    product, other = sides.on(net.lstm().product), net.lstm().product()
    return [*sides.merge(add_n(product, other)), *sides.merge(tf.sin(product)), tf.sin(other)]


@branches
def product_under_a_merge(net, sides):
    """The sum itself is never dead."""
    merged, index = sides.merge(sides.on(net.lstm().product))
    total = tf.raw_ops.Add(x=merged, y=net.lstm().product())
    return [add_n(total, net.lstm().product()), index]


@branches
def concat(net, sides):
    cell = net.lstm()
    left = sides.on(cell.left)
    return sides.merge(add_n(cell.product(left), net.lstm().product()))


@branches
def concat_of_one_product(net, sides):
    cell = net.lstm()
    return sides.merge(cell.product(sides.on(cell.left)))


@branches
def concat_for_others_too(net, sides):
    cell = net.lstm()
    left = sides.on(cell.left)
    total = add_n(cell.product(left), net.lstm().product())
    return [*sides.merge(total), *sides.merge(tf.sin(left))]


@branches
def axis(net, sides):
    """The constant alone is on one side."""
    cell = net.lstm()
    left = tf.concat([cell.x, cell.h_prev], sides.on(lambda: tf.constant(1)))
    return sides.merge(add_n(cell.product(left), net.lstm().product()))


@branches
def part(net, sides):
    """One of the tensors of the concat is on one side, but not the cell's own."""
    cell = net.lstm()
    left = tf.concat([cell.x, sides.data(cell.h_prev)], 1)
    return sides.merge(add_n(cell.product(left), net.lstm().product()))


@branches
def part_through_identity(net, sides):
    """The same, but the tensor is the cell's own but for an Identity, which is on one side."""
    cell = net.lstm()
    state = sides.on(lambda: tf.identity(cell.h_prev))
    left = tf.concat([cell.x, state], 1)
    return sides.merge(add_n(cell.product(left), net.lstm().product()))


@branches
def addend(net, sides):
    total = add_n(net.lstm().product(), sides.data(net.tensor(ROWS, 4 * CELL)))
    biases = add_n(net.lstm().bias(), sides.data(net.tensor(4 * CELL)), net.lstm().bias())
    return sides.merge(total) + sides.merge(biases)


@branches
def sum_by_a_control_edge(net, sides):
    products = [net.lstm().product() for _ in range(2)]
    waits = after([products[0].op], lambda: tf.sin(net.tensor(1)))
    return [*sides.merge(sides.on(lambda: add_n(*products))), waits]


@branches
def inner_sum(net, sides):
    """Of two nested sums the inner one is on one side."""
    inner = sides.on(lambda: add_n(net.lstm().product(), net.lstm().product()))
    return sides.merge(add_n(inner, net.lstm().product()))


@branches
def outer_sum(net, sides):
    """The outer one is, and others take the inner one, too."""
    inner = add_n(net.lstm().product(), net.lstm().product())
    outer = sides.on(lambda: add_n(inner, net.lstm().product()))
    return [*sides.merge(outer), tf.sin(inner)]


@branches
def bias(net, sides):
    bias = sides.on(net.lstm().bias)
    total = sides.merge(add_n(bias, net.lstm().bias()))
    return [*total, add_n(net.lstm().bias(), net.tensor(4 * CELL))]


@branches
def gate(net, sides):
    """The cell of one term is on one side, with all that is made of it."""
    cell = net.lstm(x=sides.data(net.tensor(BATCH, INPUT)))
    total = add_n(cell.product(), net.lstm().product())
    biases = add_n(cell.bias(), net.lstm().bias())
    return sides.merge(total) + sides.merge(biases)
