"""Small graphs around the gradient ops of cells, for `graph_pass/test_traps.py`.

Each function runs one graph with TensorFlow's own optimizers and one without, and returns what both
runs were like.
"""

import functools

import numpy as np
import tensorflow as tf

import blockcell
import rewrite

BATCH, INPUT, CELL = 3, 5, 7
ROWS = INPUT + CELL
TRAPS = {}
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def trap(build):
    """Registers a function that builds a graph from a `Net`, and returns its fetches."""

    def both():
        return [_run(build, optimized) for optimized in (True, False)]

    TRAPS[build.__name__] = both
    globals()["trap_" + build.__name__] = functools.wraps(build)(both)
    return build


def _run(build, optimized):
    with tf.Graph().as_default():
        net = Net()
        fetches = build(net)
        with v1.Session(config=rewrite.config(optimized)) as session:
            session.run(v1.global_variables_initializer())
            return rewrite.counted(lambda: rewrite.run(session, fetches, net.feeds))


class Net:
    """Tensors that are fed with random numbers."""

    def __init__(self):
        self.feeds = {}
        self._random = np.random.RandomState(5)

    def values(self, *shape):
        return self._random.uniform(-1, 1, shape).astype(np.float32)

    def tensor(self, *shape):
        """A tensor whose shape is not known to the graph."""
        tensor = v1.placeholder(tf.float32)
        self.feeds[tensor] = self.values(*shape)
        return tensor

    def weights(self, rows=ROWS, columns=4 * CELL):
        return v1.Variable(self.values(rows, columns), use_resource=False)

    def lstm(self, w=None, batch=BATCH, input_size=INPUT):
        """The gradient of an LSTM's step."""
        w = self.weights(input_size + CELL) if w is None else w
        vectors = [self.tensor(CELL) for _ in range(3)] + [self.tensor(4 * CELL)]
        x, cs_prev, h_prev = (self.tensor(batch, n) for n in (input_size, CELL, CELL))
        states = [self.tensor(batch, CELL) for _ in range(8)]
        return lstm_grad(x, cs_prev, h_prev, w, vectors, states)

    def gru(self, input_size, cell_size):
        x = self.tensor(BATCH, input_size)
        h_prev, r, u, c, d_h = (self.tensor(BATCH, cell_size) for _ in range(5))
        rows = input_size + cell_size
        w_ru, w_c = self.tensor(rows, 2 * cell_size), self.tensor(rows, cell_size)
        b_ru, b_c = self.tensor(2 * cell_size), self.tensor(cell_size)
        grads = tf.raw_ops.GRUBlockCellGrad(
            x=x, h_prev=h_prev, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c, r=r, u=u, c=c, d_h=d_h
        )
        return Cell(x, h_prev, w_ru, grads.d_r_bar_u_bar)


class Cell:
    """What the products around one step are made of."""

    def __init__(self, x, h_prev, w, gate):
        self.x, self.h_prev, self.w, self.gate = x, h_prev, w, gate

    def product(self, left=None):
        """The gradient of the weights."""
        left = tf.concat([self.x, self.h_prev], 1) if left is None else left
        return tf.raw_ops.MatMul(a=left, b=self.gate, transpose_a=True, transpose_b=False)

    def bias(self):
        return tf.raw_ops.BiasAddGrad(out_backprop=self.gate)

    def transposed(self):
        """The gradient of x and h_prev."""
        return tf.raw_ops.MatMul(a=self.gate, b=self.w, transpose_a=False, transpose_b=True)


def lstm_grad(x, cs_prev, h_prev, w, vectors, states):
    names = ["i", "cs", "f", "o", "ci", "co", "cs_grad", "h_grad"]
    inputs = dict(zip(["wci", "wcf", "wco", "b"], vectors), **dict(zip(names, states)))
    inputs.update(x=x, cs_prev=cs_prev, h_prev=h_prev, w=w)
    grads = tf.raw_ops.LSTMBlockCellGrad(use_peephole=True, **inputs)
    return Cell(x, h_prev, w, grads.dicfo)


def add_n(*tensors):
    return tf.raw_ops.AddN(inputs=tensors)


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
    return [_loop(lambda acc: acc + product, zeros, zeros.shape)]


def _loop(body, start, shape):
    """Applies `body` three times to a loop variable that has this static shape."""
    return tf.while_loop(
        lambda step, _: step < 3,
        lambda step, acc: (step + 1, body(acc)),
        [tf.constant(0), start],
        [tf.TensorShape([]), tf.TensorShape(shape)],
        parallel_iterations=4,
    )[1]


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
    return [_loop(lambda acc: tf.raw_ops.Add(x=acc, y=cell().product()), zeros, zeros.shape)]


@trap
def broadcast_to_a_loop_variable(net):
    """The loop variable has one row in the first round."""
    cell = _cell_in_loop(net)
    add = lambda acc: tf.raw_ops.Add(x=acc, y=cell().product())  # noqa: E731
    return [_loop(add, tf.zeros([1, 4 * CELL]), [None, 4 * CELL])]


@trap
def loop_variable_of_unknown_shape(net):
    cell = _cell_in_loop(net)
    add = lambda acc: tf.raw_ops.Add(x=cell().product(), y=acc)  # noqa: E731
    return [_loop(add, net.tensor(1, 1), None)]


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
def slices(net):
    product = net.lstm().transposed()
    return [tf.slice(product, [0, INPUT], [BATCH, CELL]), tf.slice(product, [0, 0], [BATCH, INPUT])]


@trap
def slices_of_odd_sizes(net):
    product = net.lstm().transposed()
    places = [(0, 2), (1, ROWS - 1), (ROWS, 0), (3, -1)]
    return [tf.slice(product, [0, begin], [BATCH - 1, size]) for begin, size in places]


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
