"""What the graphs of this package are made of, and how they run."""

import numpy as np
import tensorflow as tf

import rewrite

BATCH, INPUT, CELL = 3, 5, 7
ROWS = INPUT + CELL
SECONDS = 20
"""For one graph. One that takes longer hangs, and becomes an error."""
TRAPS = {}
"""Functions by the names under which a test calls them."""
v1 = tf.compat.v1


def register(name, run):
    """Registers a function without arguments that runs a graph."""
    assert "trap_" + name not in TRAPS
    TRAPS["trap_" + name] = run


def trap(build, name=None):
    """Registers a function that builds a graph from a `Net`, and returns its fetches.

    What is registered runs the graph as `rewrite.OPTIMIZED` says, with TensorFlow's own optimizers
    and without, and returns what the runs were like.
    """

    def run(session, net, fetches):
        return rewrite.run(session, fetches, net.feeds)

    register(
        name or build.__name__, lambda: [run_graph(build, run, on) for on in rewrite.OPTIMIZED]
    )
    return build


def run_graph(build, run, optimized):
    """Builds a graph in a session of its own.

    Args:
      build: A function of a `Net` that returns what the next one takes.
      run: A function of the session, the net, and what `build` has returned.
      optimized: Whether TensorFlow's own optimizers run.

    Returns:
      What `run` returns, and how many nodes the library has rewritten meanwhile.
    """
    options = rewrite.config(optimized)
    options.operation_timeout_in_ms = SECONDS * 1000
    with tf.Graph().as_default():
        net = Net()
        built = build(net)
        with v1.Session(config=options) as session:
            session.run(v1.global_variables_initializer())
            return rewrite.counted(lambda: run(session, net, built))


class Net:
    """Tensors that are fed with random numbers."""

    def __init__(self):
        self.feeds = {}
        self._random = np.random.RandomState(5)

    def values(self, *shape):
        return self._random.uniform(-1, 1, shape).astype(np.float32)

    def tensor(self, *shape):
        """A tensor whose shape is not known to the graph. It waits for nothing.

        An op that takes one that waits gets no control edge of its own, and feeding removes the
        tensor's.
        """
        with tf.control_dependencies(None):
            tensor = v1.placeholder(tf.float32)
        self.feeds[tensor] = self.values(*shape)
        return tensor

    def variable(self, *shape):
        """A variable whose tensor is a reference."""
        return v1.Variable(self.values(*shape), use_resource=False)

    def weights(self, rows=ROWS, columns=4 * CELL):
        return self.variable(rows, columns)

    def lstm(self, w=None, batch=BATCH, input_size=INPUT, x=None, h_prev=None, vectors=None):
        """The gradient of an LSTM's step. What is not given is made of random numbers."""
        w = self.weights(input_size + CELL) if w is None else w
        if vectors is None:
            vectors = [self.tensor(CELL) for _ in range(3)] + [self.tensor(4 * CELL)]
        x = self.tensor(batch, input_size) if x is None else x
        cs_prev = self.tensor(batch, CELL)
        h_prev = self.tensor(batch, CELL) if h_prev is None else h_prev
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

    def left(self):
        return tf.concat([self.x, self.h_prev], 1)

    def product(self, left=None):
        """The gradient of the weights."""
        left = self.left() if left is None else left
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


def after(awaited, build):
    """What `build` makes, computed after these operations and tensors."""
    with tf.control_dependencies(awaited):
        return build()


def loop(body, start, shape):
    """Applies `body` three times to a loop variable that has this static shape."""
    return tf.while_loop(
        lambda step, _: step < 3,
        lambda step, acc: (step + 1, body(acc)),
        [tf.constant(0), start],
        [tf.TensorShape([]), tf.TensorShape(shape)],
        parallel_iterations=4,
    )[1]
