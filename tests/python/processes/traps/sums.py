"""Sums of the gradients of weights and biases."""

import tensorflow as tf

import blockcell
from traps.net import BATCH, CELL, INPUT, ROWS, add_n, loop, lstm_grad, trap

v1 = tf.compat.v1


@trap
def sum_of_products(net):
    return [add_n(*[net.lstm().product() for _ in range(3)])]


@trap
def other_summands(net):
    other = net.tensor(ROWS, 4 * CELL)
    return [add_n(other, net.lstm().product(), tf.sin(other), net.lstm().product())]


@trap
def sum_of_sums(net):
    """Of AddN, only the inner sum that nobody else takes is part of the outer one."""
    taken = add_n(net.lstm().product(), net.lstm().product())
    shared = add_n(net.lstm().product(), net.lstm().product())
    return [add_n(taken, shared, net.lstm().product()), tf.sin(shared)]


@trap
def fetched_product(net):
    products = [net.lstm().product() for _ in range(3)]
    return [add_n(*products), products[1]]


@trap
def product_with_a_second_consumer(net):
    products = [net.lstm().product() for _ in range(3)]
    return [add_n(*products), tf.sin(products[1])]


@trap
def product_twice_in_a_sum(net):
    product = net.lstm().product()
    return [add_n(product, product, net.lstm().product())]


@trap
def fed_product(net):
    products = [net.lstm().product() for _ in range(3)]
    net.feeds[products[1]] = net.values(ROWS, 4 * CELL)
    return [add_n(*products)]


@trap
def fed_sum(net):
    total = add_n(net.lstm().product(), net.lstm().product())
    net.feeds[total] = net.values(ROWS, 4 * CELL)
    return [tf.sin(total)]


@trap
def fed_concat(net):
    cell = net.lstm()
    left = tf.concat([cell.x, cell.h_prev], 1)
    net.feeds[left] = net.values(BATCH, ROWS)
    return [add_n(cell.product(left), net.lstm().product())]


@trap
def fed_axis(net):
    axis = tf.constant(1)
    left = tf.concat([net.tensor(1, ROWS), net.tensor(BATCH - 1, ROWS)], axis)
    net.feeds[axis] = 0
    return [net.lstm().product(left)]


@trap
def waits_for_a_product(net):
    """Something else waits for one of the products."""
    count = v1.Variable(1.0, use_resource=False)
    product = net.lstm().product()
    with tf.control_dependencies([product.op]):
        after = v1.assign_add(count, 2.0)
    return [add_n(product, net.lstm().product()), after]


def _waiting(net, build):
    """A sum; `build` makes its first term where everything waits for `count` to change."""
    count = v1.Variable(1.0, use_resource=False)
    cell = net.lstm()
    with tf.control_dependencies([v1.assign_add(count, 2.0).op]):
        product = build(cell)
    total = add_n(product, net.lstm().product())
    with tf.control_dependencies([total.op]):
        return [total, tf.identity(count + 0.0)]


@trap
def product_waits(net):
    return _waiting(net, lambda cell: cell.product())


@trap
def only_the_axis_waits(net):
    def build(cell):
        axis = tf.constant(1)
        with tf.control_dependencies(None):
            return cell.product(tf.concat([cell.x, cell.h_prev], axis))

    return _waiting(net, build)


@trap
def sum_waits(net):
    count = v1.Variable(1.0, use_resource=False)
    products = [net.lstm().product(), net.lstm().product()]
    with tf.control_dependencies([v1.assign_add(count, 2.0).op]):
        total = add_n(*products)
    with tf.control_dependencies([total.op]):
        return [total, tf.identity(count + 0.0)]


@trap
def product_waits_for_a_product(net):
    first, cell = net.lstm().product(), net.lstm()
    with tf.control_dependencies([first.op]):
        second = cell.product()
    return [add_n(first, second)]


@trap
def another_device(net):
    cells = [net.lstm() for _ in range(3)]
    with tf.device("/cpu:1"):
        product = cells[0].product()
    return [add_n(product, cells[1].product(), cells[2].product())]


@trap
def another_type(net):
    products = [net.lstm().product(), net.lstm().product()]
    double = [tf.cast(product, tf.float64) for product in products]
    return [add_n(*double)]


@trap
def other_factors(net):
    """Products and sums of tensors that do not come from a cell."""
    net.lstm()
    a, b = net.tensor(BATCH, ROWS), net.tensor(BATCH, CELL)
    products = [tf.matmul(t, b, transpose_a=True) for t in (a, tf.sin(a))]
    sliced = tf.slice(tf.matmul(a, net.tensor(CELL, ROWS), transpose_b=True), [0, 0], [-1, 2])
    return [add_n(*products), sliced, tf.raw_ops.BiasAddGrad(out_backprop=b)]


@trap
def product_outside_of_the_loop(net):
    product = net.lstm().product()
    zeros = tf.zeros([ROWS, 4 * CELL])
    return [loop(lambda acc: acc + product, zeros, zeros.shape)]


def _cell_in_loop(net):
    """A function that makes a cell's gradient out of tensors of the outer frame."""
    w = net.weights()
    vectors = [net.tensor(CELL) for _ in range(3)] + [net.tensor(4 * CELL)]
    x = net.tensor(BATCH, INPUT)
    states = [net.tensor(BATCH, CELL) for _ in range(10)]
    return lambda: lstm_grad(tf.sin(x), *(states[:2] + [w, vectors, states[2:]]))


@trap
def added_to_a_loop_variable(net):
    cell, zeros = _cell_in_loop(net), tf.zeros([ROWS, 4 * CELL])
    return [loop(lambda acc: tf.raw_ops.Add(x=acc, y=cell().product()), zeros, zeros.shape)]


@trap
def broadcast_to_a_loop_variable(net):
    """The loop variable has one row in the first round."""
    cell = _cell_in_loop(net)
    add = lambda acc: tf.raw_ops.Add(x=acc, y=cell().product())  # noqa: E731
    return [loop(add, tf.zeros([1, 4 * CELL]), [None, 4 * CELL])]


@trap
def loop_variable_of_unknown_shape(net):
    cell = _cell_in_loop(net)
    add = lambda acc: tf.raw_ops.Add(x=cell().product(), y=acc)  # noqa: E731
    return [loop(add, net.tensor(1, 1), None)]


@trap
def tree_of_add(net):
    w = net.weights()
    products = [net.lstm(w).product() for _ in range(4)]
    return [(products[0] + products[1]) + (products[2] + products[3])]


@trap
def broadcast_by_add(net):
    """One of the products has one row."""
    gate, ones = net.lstm().gate, tf.ones([BATCH, 1])
    row = tf.raw_ops.MatMul(a=ones, b=gate, transpose_a=True)
    return [net.lstm().product() + row, net.lstm().product() + net.tensor(4 * CELL)]


@trap
def broadcast_of_unlike_cells(net):
    """A cell without input whose weights have other shapes, but for the columns."""
    one = net.lstm(input_size=0)
    left = tf.concat([one.x, one.h_prev[:, :1]], 1)
    return [net.lstm().product() + one.product(left)]


@trap
def concat_of_rows(net):
    cell = net.lstm()
    left = tf.concat([net.tensor(1, ROWS), net.tensor(BATCH - 1, ROWS)], 0)
    return [add_n(cell.product(left), net.lstm().product())]


@trap
def concat_of_other_widths(net):
    """The same number of parts, which are not equally wide."""
    left = tf.concat([net.tensor(BATCH, 2), net.tensor(BATCH, ROWS - 2)], 1)
    return [add_n(net.lstm().product(left), net.lstm().product())]


@trap
def concat_of_three(net):
    left = tf.concat([net.tensor(BATCH, n) for n in (2, 0, 3)], -1)
    return [net.lstm().product(left)]


@trap
def concat_for_others_too(net):
    cell = net.lstm()
    left = tf.concat([cell.x, cell.h_prev], 1)
    return [add_n(cell.product(left), net.lstm().product()), tf.sin(left)]


@trap
def cells_of_two_kinds(net):
    """Equal shapes of the products, of parts that are not equally wide."""
    lstm, gru = net.lstm(input_size=INPUT + CELL), net.gru(INPUT, 2 * CELL)
    return [add_n(lstm.product(), gru.product())]


@trap
def empty_batch(net):
    cells = [net.lstm(batch=0) for _ in range(2)]
    return [add_n(*[cell.product() for cell in cells]), cells[0].transposed()]


@trap
def biases(net):
    biases = [net.lstm().bias() for _ in range(3)]
    return [add_n(net.tensor(4 * CELL), *biases), biases[2], net.lstm().bias()]


@trap
def bias_added_by_add(net):
    return [net.lstm().bias() + net.tensor(1)]


@trap
def own_ops(net):
    """As the gradients that this library registers in Python put them into graphs."""
    module = blockcell.load()
    cells = [net.lstm() for _ in range(3)]
    products = [
        module.blockcell_mat_mul_add_n(
            addends=[net.tensor(ROWS, 4 * CELL)], a=[cell.x, cell.h_prev], b=[cell.gate]
        )
        for cell in cells
    ]
    biases = [
        module.blockcell_bias_add_grad_add_n(
            addends=[net.tensor(4 * CELL)], out_backprop=[cell.gate]
        )
        for cell in cells
    ]
    return [add_n(*products), add_n(*biases)]


@trap
def target(net):
    """A node that is fetched without its outputs."""
    products = [net.lstm().product() for _ in range(2)]
    return [add_n(*products), products[0].op]


@trap
def wrong_shape(net):
    """An error with TensorFlow's ops and with ours."""
    total = add_n(net.tensor(ROWS, 4), net.lstm().product(), net.lstm().product())
    try:
        with v1.Session(graph=total.graph) as session:
            session.run(v1.global_variables_initializer())
            session.run(total, net.feeds)
    except tf.errors.InvalidArgumentError:
        return [tf.constant(1.0)]
    return [tf.constant(0.0)]
