"""An op in a TensorFlow graph, run by the stock kernels and by ours."""

import json
from types import SimpleNamespace

import numpy as np

from blockcell import tf_internals
from blockcell.op_table import WEIGHT

LABEL = "blockcell"
"""The label that our kernels of stock ops are registered under."""

SIDES = ("stock", "ours")
"""The two kernels of an op."""


class LabelError(Exception):
    """A side does not run the kernel that it should."""


def configuration(tf, threads, inter_op=1):
    """Session options: so many threads of either pool, and a graph that is run as it was built."""
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads,
        inter_op_parallelism_threads=inter_op,
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


class Sides:
    """What runs either side: TensorFlow, the loaded library, and session options."""

    def __init__(self, tf, module, config):
        """Keeps them."""
        self.tf, self.module, self.config = tf, module, config

    def add(self, graph, op, side, values, attributes):
        """Adds an op's kernels to a graph.

        Args:
          graph: The `tf.Graph`.
          op: A `blockcell_tools.bench.ops.Op`.
          side: One of `SIDES`.
          values: Tensors by name: the op's inputs.
          attributes: Values of attributes by name; a kernel takes those that it has.

        Returns:
          All outputs by name, and the last kernel's operation.
        """
        values, outputs = dict(values), {}
        labels = {kernel.name: LABEL for kernel in op.kernels if kernel.function is None}
        with graph._kernel_label_map(labels if side == "ours" else {}):
            for kernel in op.kernels:
                arguments = {name: values[name] for name in kernel.inputs}
                arguments.update((k, v) for k, v in attributes.items() if k in kernel.attributes)
                added = self._function(kernel)(**arguments)
                for name, value in zip(kernel.outputs, added):
                    values[name] = outputs[name] = value
        return outputs, added[0].op

    def _function(self, kernel):
        if kernel.function is not None:
            return getattr(self.module, kernel.function)
        return getattr(self.tf.raw_ops, kernel.name)

    def check_labels(self, kernel):
        """Makes sure that nodes with our label run our kernel, and nodes without it do not.

        Only our kernels say "must have shape [" of a matrix of weights with a column too many;
        the stock kernels refuse it in other words.

        Args:
          kernel: The `OpDef` of a stock op.

        Raises:
          LabelError: It is not so.
        """
        from blockcell_tools.bench.ops import Op, Workload

        op = Op(kernel.name, (kernel,))
        case = Workload(op, "float32", False, 3 if op.is_sequence else None, 2, 3, 4)
        arrays = case.inputs(seed=1)
        name = next(name for name, tensor in kernel.inputs.items() if tensor.kind == WEIGHT)
        arrays[name] = np.pad(arrays[name], ((0, 0), (0, 1)), mode="constant")
        for side in SIDES:
            graph = self.tf.Graph()
            with graph.as_default(), self.tf.compat.v1.Session(config=self.config) as session:
                feeds = {
                    name: self.tf.compat.v1.placeholder(array.dtype, None)
                    for name, array in arrays.items()
                }
                _, operation = self.add(graph, op, side, feeds, {"use_peephole": False})
                try:
                    session.run(operation, {feeds[name]: array for name, array in arrays.items()})
                    said = ""
                except self.tf.errors.InvalidArgumentError as error:
                    said = str(error)
            if (f"{kernel.name}: {name} must have shape [" in said) != (side == "ours"):
                # Of TensorFlow's words, those of the kernel are in the middle.
                said = said.split("Node: ")[-1].split("[[")[0].strip()
                raise LabelError(
                    f"{kernel.name}: the side called {side} does not run that kernel: of a {name} "
                    f"with a column too many it says {said!r}"
                )


SESSION_RUN, CALLABLE = "Session.run", "make_callable"
"""How a program calls a session's graph."""


class Served:
    """A session whose callers feed one tensor and fetch one; all else is in the graph.

    Callers may be in several threads at once. Use it as a context manager.
    """

    def __init__(self, sides: Sides, op, arrays, attributes, side, fed="x", fetched="h"):
        """Makes the graph.

        Args:
          sides: What runs either side.
          op: A `blockcell_tools.bench.ops.Op`; None for a graph that returns what it is fed.
          arrays: The op's inputs by name; of the one that is fed, the type and the shape count.
          attributes: Values of attributes by name.
          side: One of `SIDES`.
          fed: The name of the input that is fed.
          fetched: The name of the output that is fetched.
        """
        tf = sides.tf
        with tf.Graph().as_default() as graph:
            self._fed = tf.compat.v1.placeholder(arrays[fed].dtype, arrays[fed].shape)
            if op is None:
                self._fetched = tf.identity(self._fed)
            else:
                values = {name: tf.constant(array) for name, array in arrays.items() if name != fed}
                outputs, _ = sides.add(graph, op, side, {**values, fed: self._fed}, attributes)
                self._fetched = outputs[fetched]
            self._session = tf.compat.v1.Session(graph=graph, config=sides.config)

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *exception):
        """Closes the session."""
        self._session.close()

    def caller(self, how):
        """A function that feeds its argument and returns what is fetched.

        Args:
          how: `SESSION_RUN` or `CALLABLE`.
        """
        if how == CALLABLE:
            return self._session.make_callable(self._fetched, [self._fed])
        return lambda array: self._session.run(self._fetched, {self._fed: array})


class Pair:
    """A session in which both sides of an op can be run, on one set of variables.

    Variables because they stay where they are from run to run, and because TensorFlow cannot
    reuse their memory for outputs. Use it as a context manager.
    """

    def __init__(self, sides: Sides, op, arrays, attributes, constants=(), kept=(), nodes=None):
        """Sets the variables to the arrays, the op's inputs by name.

        `constants` are no variables. `kept` are variables of which kernels may keep packed copies:
        they have resources, and memory of TensorFlow's. Of others the kernels know nothing. `nodes`
        are texts by the names of attributes that nodes of the op get.
        """
        tf = sides.tf
        self._sides, self._op, self._attributes = sides, op, attributes
        self._nodes = nodes or {}
        self._graph = tf.Graph()
        with self._graph.as_default():
            feeds = {
                name: tf.compat.v1.placeholder(array.dtype, array.shape)
                for name, array in arrays.items()
                if name not in constants
            }
            variables = {
                name: tf.compat.v1.Variable(
                    tf.raw_ops.DeepCopy(x=feed) if name in kept else feed,
                    trainable=False,
                    use_resource=name in kept,
                )
                for name, feed in feeds.items()
            }
            self._values = {name: variable.value() for name, variable in variables.items()}
            self._values.update((name, tf.constant(arrays[name])) for name in constants)
            self._session = tf.compat.v1.Session(graph=self._graph, config=sides.config)
            self._session.run(
                [variable.initializer for variable in variables.values()],
                {feed: arrays[name] for name, feed in feeds.items()},
            )

    def __enter__(self):
        """Returns itself."""
        return self

    def __exit__(self, *exception):
        """Closes the session."""
        self._session.close()

    def outputs(self, side):
        """What a side's kernels compute, by the output's name."""
        with self._graph.as_default():
            return self._session.run(self._add(side).outputs)

    def chain(self, side, length, read=None):
        """A function that runs a side's kernels `length` times, one after the other.

        Args:
          side: One of `SIDES`.
          length: How often.
          read: Names of the outputs that have a reader. None for all of an op on sequences, which
            leaves out what nobody reads.
        """
        if read is None and self._op.is_sequence:
            read = self._op.kernels[-1].outputs
        with self._graph.as_default():
            last = []
            for _ in range(length):
                with self._sides.tf.control_dependencies(last):
                    last = [self._reader(self._add(side), read)]
            return self._session.make_callable(last[0])

    def chain_by_data(self, side, length, output, to):
        """The same, where each call has the call before as its input, and nothing else is read.

        Args:
          side: One of `SIDES`.
          length: How often.
          output: The name of an output.
          to: The name of the input that it becomes in the next call.
        """
        with self._graph.as_default():
            values = dict(self._values)
            for _ in range(length):
                added = self._add(side, values)
                values[to] = added.outputs[output]
            return self._session.make_callable(self._reader(added, [output]))

    def traced_bytes(self, side):
        """Bytes that TensorFlow's own allocator gave to a side's kernels in one run.

        Returns:
          By the kernel's name, the bytes in use at its peak, and those that outlive it.
        """
        tf = self._sides.tf
        with self._graph.as_default():
            operation = self._add(side).operation
        trace = tf.compat.v1.RunMetadata()
        options = tf.compat.v1.RunOptions(trace_level=tf.compat.v1.RunOptions.FULL_TRACE)
        self._session.run(operation, options=options, run_metadata=trace)
        kinds = {operation.name: operation.type for operation in self._graph.get_operations()}
        found = {kernel.name: (0, 0) for kernel in self._op.kernels}
        for device in trace.step_stats.dev_stats:
            for node in device.node_stats:
                kind = kinds.get(node.node_name)
                if kind in found:
                    peak = sum(memory.peak_bytes for memory in node.memory)
                    found[kind] = (peak, sum(memory.live_bytes for memory in node.memory))
        return found

    def _add(self, side, values=None):
        """Adds the op to the graph once more."""
        outputs, operation = self._sides.add(
            self._graph, self._op, side, values or self._values, self._attributes
        )
        for name, text in self._nodes.items():
            tf_internals.set_attribute(operation, name, text)
        return SimpleNamespace(outputs=outputs, operation=operation)

    def _reader(self, added, read):
        """The last operation of an added op: one that reads outputs, which copies nothing."""
        if read is None:
            return added.operation
        return self._sides.tf.identity_n([added.outputs[name] for name in read])[0].op
