"""Control inputs of slices: one op for all of them waits for what each of them waits for."""

import tensorflow as tf

from traps.net import CELL, INPUT, after, trap

v1 = tf.compat.v1
PLACES = (0, INPUT), (INPUT, CELL)


def parts(product, *awaited):
    """The slices of x and h_prev, which wait for these operations."""
    return [
        after(waits, lambda place=place: tf.slice(product, [0, place[0]], [-1, place[1]]))
        for place, waits in zip(PLACES, awaited)
    ]


class Counter:
    """A variable that is changed once, which can be waited for, and seen."""

    def __init__(self, awaited=()):
        self._count = v1.Variable(1.0, use_resource=False)
        self.changed = after(awaited, lambda: v1.assign_add(self._count, 2.0).op)

    def seen(self, *tensors):
        """The value after these tensors were computed."""
        return after([t.op for t in tensors], lambda: tf.identity(self._count + 0.0))


@trap
def slices_wait_for_the_same(net):
    count = Counter()
    slices = parts(net.lstm().transposed(), [count.changed], [count.changed])
    return [*slices, count.seen(*slices)]


@trap
def slices_wait_for_other_things(net):
    counts = Counter(), Counter()
    slices = parts(net.lstm().transposed(), *[[count.changed] for count in counts])
    return slices + [count.seen(part) for count, part in zip(counts, slices)]


@trap
def slices_wait_for_what_the_product_waits_for(net):
    counts = [Counter() for _ in range(3)]
    changed = [count.changed for count in counts]
    product = after(changed, net.lstm().transposed)
    slices = parts(product, changed[:1], changed[1:])
    return slices + [count.seen(*slices) for count in counts]


@trap
def slices_wait_for_an_ancestor(net):
    """For the cell's gradient itself, and for one of its inputs."""
    w = net.weights()
    read = tf.identity(w._ref())
    cell = net.lstm(read)
    return parts(cell.transposed(), [cell.gate.op], [read.op])


@trap
def slices_wait_for_the_product(net):
    product = net.lstm().transposed()
    return parts(product, [product.op], [product.op])


@trap
def something_waits_for_the_product(net):
    """And both slices wait for that."""
    product = net.lstm().transposed()
    count = Counter([product.op])
    slices = parts(product, [count.changed], [count.changed])
    return [*slices, count.seen(*slices)]


@trap
def something_waits_for_the_product_but_no_slice(net):
    product = net.lstm().transposed()
    count = Counter([product.op])
    slices = parts(product, [], [])
    return [*slices, count.seen()]


@trap
def each_slice_is_waited_for(net):
    slices = parts(net.lstm().transposed(), [], [])
    counts = [Counter([part.op]) for part in slices]
    return slices + [after([count.changed], count.seen) for count in counts]


@trap
def only_a_constant_waits(net):
    """The slice itself waits for nothing, but the constant that says where it begins does."""
    count = Counter()
    product = net.lstm().transposed()
    begin = after([count.changed], lambda: tf.constant([0, INPUT]))
    slices = [tf.slice(product, [0, 0], [-1, INPUT]), tf.slice(product, begin, [-1, CELL])]
    return [*slices, count.seen(slices[1])]
