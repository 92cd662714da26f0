"""Slices of a product with transposed weights: the gradients of x and h_prev."""

import tensorflow as tf

from traps.net import BATCH, CELL, INPUT, ROWS, trap

v1 = tf.compat.v1


def columns(product, rows, places):
    """Slices of the first rows, with a slice for each place: its first column and its size."""
    return [tf.slice(product, [0, begin], [rows, size]) for begin, size in places]


@trap
def slices(net):
    product = net.lstm().transposed()
    return [tf.slice(product, [0, INPUT], [BATCH, CELL]), tf.slice(product, [0, 0], [BATCH, INPUT])]


@trap
def slices_of_odd_sizes(net):
    product = net.lstm().transposed()
    return columns(product, BATCH - 1, [(0, 2), (ROWS, 0), (4, 5), (3, 1), (10, -1)])


@trap
def many_slices_that_overlap(net):
    """An op with a product for each of them would compute fifty."""
    rows, columns_each = 60, 10
    product = net.lstm(input_size=rows - CELL).transposed()
    return columns(product, -1, [(k, columns_each) for k in range(rows - columns_each)])


@trap
def two_slices_that_overlap(net):
    return columns(net.lstm().transposed(), -1, [(0, 4), (3, 4)])


@trap
def one_slice_inside_another(net):
    return columns(net.lstm().transposed(), -1, [(1, ROWS - 2), (INPUT, 1)])


@trap
def equal_slices(net):
    """As far as the size of the weights is known."""
    return columns(net.lstm().transposed(), -1, [(INPUT, CELL), (INPUT, -1)])


@trap
def open_slice_that_overlaps(net):
    return columns(net.lstm().transposed(), -1, [(4, 3), (2, -1)])


@trap
def two_open_slices(net):
    return columns(net.lstm().transposed(), -1, [(1, -1), (INPUT, -1)])


@trap
def empty_slice_inside_another(net):
    return columns(net.lstm().transposed(), -1, [(0, INPUT), (2, 0), (INPUT, CELL)])


@trap
def slices_of_different_rows(net):
    product = net.lstm().transposed()
    return [tf.slice(product, [0, 0], [2, 4]), tf.slice(product, [0, 4], [-1, 4])]


@trap
def slice_of_later_rows(net):
    return [tf.slice(net.lstm().transposed(), [1, 0], [1, 4])]


@trap
def slice_of_unknown_size(net):
    size = v1.placeholder(tf.int32)
    net.feeds[size] = [BATCH, 4]
    return [tf.slice(net.lstm().transposed(), [0, 1], size)]


@trap
def slice_and_other_consumer(net):
    product = net.lstm().transposed()
    return [tf.slice(product, [0, 0], [-1, 4]), product]


@trap
def fed_slice(net):
    product = net.lstm().transposed()
    first, second = (tf.slice(product, [0, begin], [-1, 4]) for begin in (0, 4))
    net.feeds[first] = net.values(BATCH, 4)
    return [tf.sin(first), second]


@trap
def slice_waits_for_the_other(net):
    """Both in one node would be a cycle."""
    product = net.lstm().transposed()
    count = v1.Variable(1.0, use_resource=False)
    first = tf.slice(product, [0, 0], [-1, 4])
    with tf.control_dependencies([v1.assign(count, tf.reduce_sum(first)).op]):
        second = tf.slice(product, [0, 4], [-1, 4])
    return [second]


@trap
def slice_waits(net):
    product = net.lstm().transposed()
    count = v1.Variable(1.0, use_resource=False)
    with tf.control_dependencies([v1.assign_add(count, 2.0).op]):
        first = tf.slice(product, [0, 0], [-1, 4])
    with tf.control_dependencies([first.op]):
        return [tf.slice(product, [0, 4], [-1, 4]), first, tf.identity(count + 0.0)]
