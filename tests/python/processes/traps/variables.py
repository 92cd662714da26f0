"""Variables with references: who reads one gets the value of that moment, and it may change.

In each graph it is certain which comes first, reading or changing. Reading through `Identity` is
reading, too: it hands the variable's own memory on.
"""

import functools
import itertools

import tensorflow as tf

from traps.net import BATCH, CELL, INPUT, ROWS, add_n, after, lstm_grad, trap

v1 = tf.compat.v1
SIZES = {"x": INPUT, "h_prev": CELL}
READS = {
    "directly": lambda variable: variable._ref(),
    "through_identity": lambda variable: tf.identity(variable._ref()),
}
CHANGES = {"assign": v1.assign, "assign_add": v1.assign_add}


def change(net, variable, awaited, how="assign_add"):
    """Changes a variable once these operations are done; returns the operation that does it."""
    values = 100 * net.values(*variable.shape.as_list())
    return after(awaited, lambda: CHANGES[how](variable, values).op)


def late_product(net, awaited):
    """The product of a cell of its own, which waits for these operations."""
    return after(awaited, net.lstm().product)


def snapshot(net, role, read, how):
    """A concat copies the variable, which changes then; and then comes the sum."""
    variable = net.variable(BATCH, SIZES[role])
    cell = net.lstm(**{role: READS[read](variable)})
    left = cell.left()
    changed = change(net, variable, [left.op, cell.gate.op], how)
    return [add_n(cell.product(left), late_product(net, [changed]))]


def changed_first(net, role, read, how):
    """The variable changes before anybody reads it."""
    variable = net.variable(BATCH, SIZES[role])
    with tf.control_dependencies([change(net, variable, [], how)]):
        cell = net.lstm(**{role: READS[read](variable)})
        products = cell.product(), cell.transposed()
    return [add_n(products[0], net.lstm().product()), tf.slice(products[1], [0, 0], [-1, 4])]


def weights_change(net, read, how):
    """A step of training in the graph: the weights change after the products, then others come."""
    w = net.variable(ROWS, 4 * CELL)
    cell = net.lstm(READS[read](w))
    transposed = cell.transposed()
    d_x, d_h_prev = (tf.slice(transposed, [0, k], [-1, n]) for k, n in ((0, INPUT), (INPUT, CELL)))
    total = add_n(cell.product(), net.lstm().product())
    with tf.control_dependencies([change(net, w, [d_x.op, d_h_prev.op, total.op], how)]):
        again = net.lstm(READS[read](w)).transposed()
        return [d_x, d_h_prev, total, tf.slice(again, [0, 1], [-1, 3]), tf.identity(w._ref())]


def as_an_addend(net, read, how):
    """A sum has the variable as it was, and leaves it as it was; then it changes."""
    variable = net.variable(ROWS, 4 * CELL)
    first = add_n(READS[read](variable), net.lstm().product(), net.lstm().product())
    before = after([first.op], lambda: tf.sin(variable._ref()))
    changed = change(net, variable, [before.op], how)
    with tf.control_dependencies([changed]):
        second = add_n(net.lstm().product(), READS[read](variable), net.lstm().product())
    return [first, before, second]


def inner_sum(net, read, how):
    """An inner sum takes the variable before it changes, and is part of an outer one."""
    variable = net.variable(ROWS, 4 * CELL)
    inner = add_n(net.lstm().product(), READS[read](variable), net.tensor(ROWS, 4 * CELL))
    changed = change(net, variable, [inner.op], how)
    return [add_n(inner, late_product(net, [changed]))]


for _read, _how in itertools.product(READS, CHANGES):
    _parts = dict(read=_read, how=_how)
    for _build in (snapshot, changed_first):
        for _role in SIZES:
            trap(
                functools.partial(_build, role=_role, **_parts),
                f"{_build.__name__}_{_role}_{_read}_{_how}",
            )
    for _build in (weights_change, as_an_addend, inner_sum):
        trap(functools.partial(_build, **_parts), f"{_build.__name__}_{_read}_{_how}")


@trap
def snapshot_of_both(net):
    x, h_prev = net.variable(BATCH, INPUT), net.variable(BATCH, CELL)
    cell = net.lstm(x=x._ref(), h_prev=h_prev._ref())
    left = cell.left()
    changed = [change(net, v, [left.op, cell.gate.op]) for v in (x, h_prev)]
    return [add_n(late_product(net, changed), cell.product(left), net.tensor(ROWS, 4 * CELL))]


@trap
def snapshot_in_a_tree_of_add(net):
    state, w = net.variable(BATCH, CELL), net.weights()
    cell = net.lstm(w, h_prev=state._ref())
    left = cell.left()
    changed = change(net, state, [left.op, cell.gate.op])
    late = after([changed], net.lstm(w).product)
    return [tf.raw_ops.Add(x=tf.raw_ops.Add(x=cell.product(left), y=w._ref()), y=late)]


@trap
def snapshot_for_one_product(net):
    """No sum: the product alone waits for the change. The concat has to stay."""
    state = net.variable(BATCH, CELL)
    cell = net.lstm(h_prev=state._ref())
    left = cell.left()
    changed = change(net, state, [left.op, cell.gate.op])
    return [after([changed], lambda: cell.product(left))]


@trap
def snapshot_with_two_products(net):
    """One of two products comes before the change, the other after it."""
    state = net.variable(BATCH, CELL)
    cells = [net.lstm(h_prev=state._ref()) for _ in range(2)]
    left = cells[0].left()
    first = cells[0].product(left)
    changed = change(net, state, [first.op] + [cell.gate.op for cell in cells])
    second = after([changed], lambda: cells[1].product(left))
    return [add_n(second, net.lstm().product()), tf.sin(first)]


@trap
def snapshot_then_the_sum_waits(net):
    """Only the sum comes after the change."""
    state = net.variable(BATCH, CELL)
    cell = net.lstm(h_prev=state._ref())
    left = cell.left()
    product, other = cell.product(left), net.lstm().product()
    changed = change(net, state, [left.op, cell.gate.op])
    return [after([changed], lambda: add_n(product, other))]


@trap
def snapshot_of_another_shape(net):
    """The state and x change their widths. Parts of other widths than the cell's are no error."""
    x, h_prev = (
        v1.Variable(net.values(BATCH, size), use_resource=False, validate_shape=False)
        for size in (INPUT, CELL)
    )
    cell = net.lstm(x=x._ref(), h_prev=h_prev._ref())
    changed = [
        after(
            [cell.gate.op],
            lambda v=v: v1.assign(v, net.values(BATCH, ROWS // 2), validate_shape=False).op,
        )
        for v in (x, h_prev)
    ]
    return [add_n(after(changed, cell.product), net.lstm().product())]


@trap
def product_then_the_sum_waits(net):
    """The product has read the variable itself, no copy of it."""
    left = net.variable(BATCH, ROWS)
    cell = net.lstm()
    product, other = cell.product(left._ref()), net.lstm().product()
    changed = change(net, left, [product.op])
    return [after([changed], lambda: add_n(product, other))]


@trap
def weights_change_between_slices(net):
    w = net.variable(ROWS, 4 * CELL)
    product = net.lstm(w._ref()).transposed()
    first = tf.slice(product, [0, 0], [-1, INPUT])
    changed = change(net, w, [first.op])
    second = after([changed], lambda: tf.slice(product, [0, INPUT], [-1, CELL]))
    return [first, second, after([changed], lambda: tf.identity(w._ref()))]


@trap
def weights_change_before_both_slices(net):
    """Both slices wait for the same, which waits for the product."""
    w = net.variable(ROWS, 4 * CELL)
    product = net.lstm(w._ref()).transposed()
    with tf.control_dependencies([change(net, w, [product.op])]):
        return [tf.slice(product, [0, 0], [-1, 4]), tf.slice(product, [0, 4], [-1, 4])]


@trap
def peepholes_and_bias_change(net):
    """After the cell's gradient, before all that is made of it."""
    vectors = [net.variable(size) for size in (CELL, CELL, CELL, 4 * CELL)]
    cell = net.lstm(vectors=[vector._ref() for vector in vectors])
    with tf.control_dependencies([change(net, v, [cell.gate.op]) for v in vectors]):
        made = cell.product(), cell.bias(), cell.transposed()
    total = add_n(made[0], net.lstm().product())
    biases = add_n(made[1], vectors[3]._ref(), net.lstm().bias())
    biases_wait = after([change(net, vectors[3], [biases.op])], lambda: tf.negative(biases))
    return [total, biases_wait, tf.slice(made[2], [0, 2], [-1, 4])]


@trap
def snapshot_in_a_loop(net):
    """Each round copies the state, changes it, and adds a product up.

    Made of the ops of TensorFlow 1's loops, the only ones that take references.
    """
    raw = tf.raw_ops
    enter = functools.partial(raw.Enter, frame_name="rounds", is_constant=True)
    state = raw.RefEnter(
        data=net.variable(BATCH, CELL)._ref(), frame_name="rounds", is_constant=True
    )
    x, w, limit = (enter(data=t) for t in (net.tensor(BATCH, INPUT), net.weights(), 3))
    vectors = [enter(data=net.tensor(size)) for size in (CELL, CELL, CELL, 4 * CELL)]
    cs_prev, *states = (enter(data=net.tensor(BATCH, CELL)) for _ in range(9))

    start = (raw.Enter(data=t, frame_name="rounds") for t in (0, tf.zeros([ROWS, 4 * CELL])))
    merged = [raw.Merge(inputs=[tensor, tensor]).output for tensor in start]
    condition = raw.LoopCond(input=tf.less(merged[0], limit))
    sides = [raw.Switch(data=tensor, pred=condition) for tensor in merged]
    step, total = (tf.identity(side.output_true) for side in sides)
    with tf.control_dependencies([step.op, total.op]):  # Constants are in the loop by that.
        cell = lstm_grad(x, cs_prev, state, w, vectors, states)
        left, next_step = cell.left(), step + 1
    changed = after([left.op, cell.gate.op], lambda: raw.AssignAdd(ref=state, value=cs_prev))
    next_total = raw.Add(x=total, y=after([changed.op], lambda: cell.product(left)))
    for merge, value in zip(merged, (next_step, next_total)):
        merge.op._update_input(1, raw.NextIteration(data=value))
    return [raw.Exit(data=side.output_false) for side in sides]
