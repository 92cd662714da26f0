"""The sides of the comparison: see `bench.worker`."""

import os
import platform

import blockcell
from blockcell import own_ops


class LoopError(Exception):
    """A loop stayed."""


class _Graph:
    """A graph in a session; what differs is in `_build`."""

    def __init__(self, name, job):
        """Starts TensorFlow."""
        import tensorflow as tf

        del name
        self._tf = tf
        self._config = tf.compat.v1.ConfigProto(
            device_count={"GPU": 0},
            intra_op_parallelism_threads=job["threads"],
            inter_op_parallelism_threads=1,
        )

    def about(self):
        """Versions."""
        versions = {"tensorflow": self._tf.__version__, "python": platform.python_version()}
        return {"versions": versions}

    def prepare(self, net, arrays):
        """Makes the graph."""
        definition = self._tf.compat.v1.GraphDef.FromString(net.file.read_bytes())
        with self._tf.Graph().as_default() as graph:
            x, output = self._build(net, definition)
        session = self._tf.compat.v1.Session(graph=graph, config=self._config)
        call = session.make_callable(output, [x])
        self.run = lambda: call(arrays["x"])

    def results(self):
        """The output."""
        return {"output": self.run()}

    def _build(self, net, definition):
        del net
        names = ["x:0", "output:0"]
        return self._tf.import_graph_def(definition, return_elements=names, name="")


class TensorFlow(_Graph):
    """The loop without the library."""


class Ours(_Graph):
    """The loop with the library."""

    def __init__(self, name, job):
        """Loads the library, which rewrites graphs."""
        super().__init__(name, job)
        # Workers run without, for others to compare kernels. It switches the graph passes off, too.
        os.environ.pop("BLOCKCELL_OVERRIDE", None)
        blockcell.load(job["library"])

    def about(self):
        """Versions and instruction set."""
        info = blockcell.info()
        versions = dict(super().about()["versions"], blockcell=info["version"])
        return {"versions": versions, "isa": info["isa"]}

    def prepare(self, net, arrays):
        """Makes the graph, and checks that the loop has become a layer."""
        layers = dict(blockcell.info()["rewritten"])
        super().prepare(net, arrays)
        self.run()
        self._check(
            {
                op: n - layers[op]
                for op, n in blockcell.info()["rewritten"].items()
                if n > layers[op]
            }
        )

    def _check(self, rewritten):
        if list(rewritten.values()) != [1] or not next(iter(rewritten)).endswith("Layer"):
            raise LoopError(f"the loop has not become a layer, but {rewritten}")


class Layer(Ours):
    """The layer by hand: one op, from the same weights."""

    def _build(self, net, definition):
        tf = self._tf
        weights = {
            node.name.split("/", 2)[-1]: tf.make_ndarray(node.attr["value"].tensor)
            for node in definition.node
            if node.op == "Const" and node.name.endswith(("/kernel", "/bias"))
        }
        x = tf.compat.v1.placeholder(tf.float32, [None, None, net.input_size])
        steps = tf.transpose(x, [1, 0, 2])
        shape = tf.shape(steps)
        state = tf.zeros([shape[1], net.units])
        build = {"lstm": self._lstm, "gru": self._gru}[net.cell]
        h = build(steps, shape, state, {name: tf.constant(w) for name, w in weights.items()})
        return x, tf.transpose(h, [1, 0, 2])

    def _check(self, rewritten):
        del rewritten  # Nothing is.

    def _lstm(self, x, shape, state, weights):
        tf = self._tf
        peepholes = dict.fromkeys(["wci", "wcf", "wco"], tf.zeros([state.shape[1]]))
        w, b = weights["kernel"], weights["bias"]
        steps = tf.cast(shape[0], tf.int64)
        states = {"cs_prev": state, "h_prev": state}
        call = dict(states, seq_len_max=steps, x=x, w=w, b=b, cell_clip=0.0, **peepholes)
        return tf.raw_ops.BlockLSTM(**call).h

    def _gru(self, x, shape, state, weights):
        del shape
        names = ["gates/kernel", "candidate/kernel", "gates/bias", "candidate/bias"]
        w_ru, w_c, b_ru, b_c = (weights[name] for name in names)
        return own_ops.block_gru(x, w_ru, w_c, b_ru, b_c, h_prev=state).h
