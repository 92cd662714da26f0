"""An op in a TensorFlow graph, run by the stock kernel and by ours."""

import json

from bench.ops import OPS, Case

LABEL = "blockcell"
"""The label that our kernels are registered under."""

SIDES = ("stock", "ours")
"""The two kernels of an op."""


def configuration(tf, threads):
    """Session options: so many intra-op threads, and a graph that is run as it was built."""
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=1,
        device_count={"GPU": 0},
    )
    # The repeated ops have the same inputs and unused outputs: any optimizer would merge them.
    config.graph_options.optimizer_options.opt_level = tf.compat.v1.OptimizerOptions.L0
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    return config


def library_info(tf, module, config):
    """What the op `BlockcellInfo` returns, as a dictionary."""
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        return json.loads(session.run(module.blockcell_info()).decode())


class Pair:
    """A session in which both kernels of a case can be run, on one set of variables.

    Variables because they stay where they are from run to run, and because TensorFlow cannot
    reuse their memory for outputs. Use it as a context manager.
    """

    def __init__(self, tf, case: Case, config, seed):
        """Sets the variables to the case's inputs."""
        self._tf = tf
        self._case = case
        self._graph = tf.Graph()
        with self._graph.as_default():
            arrays = case.inputs(seed)
            feeds = {
                name: tf.compat.v1.placeholder(array.dtype, array.shape)
                for name, array in arrays.items()
            }
            variables = {
                name: tf.compat.v1.Variable(feed, trainable=False, use_resource=True)
                for name, feed in feeds.items()
            }
            self._values = {name: variable.value() for name, variable in variables.items()}
            self._session = tf.compat.v1.Session(graph=self._graph, config=config)
            self._session.run(
                [variable.initializer for variable in variables.values()],
                {feeds[name]: array for name, array in arrays.items()},
            )

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *exception):
        """Closes the session."""
        self._session.close()

    def outputs(self, side):
        """What a side's kernel computes, by the output's name."""
        with self._graph.as_default():
            arrays = self._session.run(list(self._add(side)))
        return {tensor.name: array for tensor, array in zip(OPS[self._case.op].outputs, arrays)}

    def chain(self, side, length):
        """A function that runs a side's kernel `length` times, one after the other."""
        with self._graph.as_default():
            last = []
            for _ in range(length):
                with self._tf.control_dependencies(last):
                    last = [self._add(side)[0].op]
            return self._session.make_callable(last[0])

    def _add(self, side):
        """Adds the op to the graph once more."""
        attributes = {"use_peephole": self._case.use_peephole}
        if not OPS[self._case.op].has_peephole:
            attributes = {}
        labels = {self._case.op: LABEL} if side == "ours" else {}
        with self._graph._kernel_label_map(labels):
            return getattr(self._tf.raw_ops, self._case.op)(**self._values, **attributes)
