"""The sides of the comparison: see `blockcell_tools.bench.side`."""

import os
import re
from collections import defaultdict

import numpy as np

import blockcell
from bench.inference.nets import BIDIRECTIONAL, KERAS2, KERAS3, Net
from blockcell import block_gru_ops
from blockcell_tools.bench.graphs import library_info
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.tensorflow_side import TensorFlowSide, WithLibrary
from blockcell_tools.bench.worker import answer


class LoopError(Exception):
    """The library has rewritten something else than it should have."""


class TensorFlow(TensorFlowSide):
    """The loop without the library."""

    def prepare(self, net, arrays):
        """Makes the graph, and runs it once."""
        self._net = net
        if net.form in (KERAS2, KERAS3):
            inputs, results = self._load(net)
        else:
            definition = self._tf.compat.v1.GraphDef.FromString(net.file.read_bytes())
            with self._tf.Graph().as_default() as graph:
                inputs, results = self._build(net, definition, list(arrays))
            self._open(graph)
        call = self._session.make_callable(results, inputs)
        self.run = lambda: call(*arrays.values())
        self.run()

    def _load(self, net):
        """Loads a SavedModel into a session; returns names of its input and its output."""
        with self._tf.Graph().as_default() as graph:
            self._open(graph)
            load = self._tf.compat.v1.saved_model.load
            model = load(self._session, ["serve"], str(net.file))
        signature = model.signature_def["serving_default"]
        both = (signature.inputs, signature.outputs)
        return [[info.name for info in infos.values()] for infos in both]

    def results(self):
        """Output and last states by name."""
        return dict(zip(self._net.results, self.run()))

    def _build(self, net, definition, inputs):
        """Returns tensors of the inputs of these names, and of the results."""
        names = [name + ":0" for name in [*inputs, *net.results]]
        found = self._tf.import_graph_def(definition, return_elements=names, name="")
        return found[: len(inputs)], found[len(inputs) :]


class Ours(WithLibrary, TensorFlow):
    """The loop with the library."""

    REWRITE = "1"

    def __init__(self, name, job):
        """Loads the library."""
        os.environ["BLOCKCELL_REWRITE"] = self.REWRITE
        super().__init__(name, job)
        self._rewritten = {}

    def _info(self):
        # Not `blockcell.info()`: the first session of a process sets how many threads there are.
        return library_info(self._tf, self._module, self._config)

    def about(self):
        """Versions, instruction set, and what was put into the graph, by op."""
        return dict(super().about(), rewritten=self._rewritten)

    def prepare(self, net, arrays):
        """Makes the graph, and checks what has become of it."""
        before = self._info()["rewritten"]
        super().prepare(net, arrays)
        after = self._info()["rewritten"]
        self._rewritten = {op: n - before[op] for op, n in after.items() if n > before[op]}
        # What TensorFlow optimizes beside cuDNN's ops of Keras 2 are the loops that these replace.
        names = re.compile("Cudnn" if net.form == KERAS2 else "Blockcell.*Layer|BlockcellKeras")
        layers = {op: n for op, n in self._rewritten.items() if names.match(op)}
        wanted = self._wanted(net)
        if layers != wanted:
            raise LoopError(f"{net}: layers are {layers}, expected {wanted}")

    def _wanted(self, net):
        """How many layers the graph should have got, by op."""
        if net.form == KERAS2:
            return {"CudnnRNN": net.cells}
        if net.form == KERAS3:
            return {f"BlockcellKeras{net.cell.upper()}": 1}
        return {f"Blockcell{net.cell.upper()}Layer": net.cells}


class Unrewritten(Ours):
    """The same, where graphs stay as they are."""

    REWRITE = "0"

    def _wanted(self, net):
        return {}


class Layer(Unrewritten):
    """The layers by hand: an op for each, from the same weights."""

    def _load(self, net):
        """The layer of a SavedModel."""
        tf = self._tf
        with tf.Graph().as_default() as graph, np.load(net.file / "weights.npz") as weights:
            x = tf.compat.v1.placeholder(tf.float32, [None, None, net.input_size])
            call = {"lstm": self._keras_lstm, "gru": self._keras_gru}[net.cell]
            given = {name: tf.constant(value) for name, value in weights.items()}
            h = call(tf.transpose(x, [1, 0, 2]), **given)
            output = tf.transpose(h, [1, 0, 2])
            self._open(graph)
        return [x], [output]

    def _keras_lstm(self, x, kernel, recurrent_kernel, bias):
        # A constant, as it is folded.
        w = self._tf.concat([kernel, recurrent_kernel], 0)
        call = self._block_lstm_call(x, w, bias, self._tf.shape(x)[0])
        return self._tf.raw_ops.BlockLSTMV2(**call, cell_clip=0.0, use_peephole=False).h

    def _block_lstm_call(self, x, w, b, steps):
        """Inputs of `BlockLSTM`, with states of zeros and without peepholes."""
        tf = self._tf
        state = tf.zeros([tf.shape(x)[1], w.shape[1] // 4])
        call = {"seq_len_max": tf.cast(steps, tf.int64), "cs_prev": state, "h_prev": state}
        call.update(dict.fromkeys(["wci", "wcf", "wco"], tf.zeros([w.shape[1] // 4])))
        return dict(call, x=x, w=w, b=b)

    def _keras_gru(self, x, kernel, recurrent_kernel, bias):
        """The columns in the order of `BlockGRU`, with biases as Keras has them."""
        tf = self._tf
        z, r, c = tf.split(tf.concat([kernel, recurrent_kernel], 0), 3, 1)
        b_z, b_r, b_c = tf.split(bias, 3, 1)
        gates = tf.concat([tf.reduce_sum(b, 0) for b in (b_r, b_z)], 0)
        weights = (tf.concat([r, z], 1), c, gates, b_c[0])
        return block_gru_ops.block_gru(x, *weights, b_hc=b_c[1], reset_after=True).h

    def _build(self, net, definition, inputs):
        tf = self._tf
        shapes = {"x": [None, None, net.input_size], "lengths": [None]}
        types = {"x": tf.float32, "lengths": tf.int32}
        fed = {name: tf.compat.v1.placeholder(types[name], shapes[name]) for name in inputs}
        call = {"lstm": self._lstm, "gru": self._gru}[net.cell]
        h = tf.transpose(fed["x"], [1, 0, 2])
        states = []
        if net.form == BIDIRECTIONAL:
            backward, forward = self._cells(definition)
            there, states = call(h, forward, None)
            back, others = call(tf.reverse(h, [0]), backward, None)
            h = tf.concat([there, tf.reverse(back, [0])], 2)
            states += others
        else:
            for weights in self._cells(definition):
                h, its = call(h, weights, fed.get("lengths"))
                states += its
        return list(fed.values()), [tf.transpose(h, [1, 0, 2]), *states]

    def _cells(self, definition):
        """Weights and biases of each cell by name, in the order of the cells' names."""
        tf = self._tf
        cells = defaultdict(dict)
        for node in definition.node:
            if node.op == "Const" and node.name.endswith(("/kernel", "/bias")):
                name = node.name.rpartition("_cell/")[2]
                value = tf.make_ndarray(node.attr["value"].tensor)
                cells[node.name[: -len(name)]][name] = tf.constant(value)
        return [cells[name] for name in sorted(cells)]

    def _lstm(self, x, weights, lengths):
        """The op has one length for all rows; the rest is as `LSTMBlockFusedCell` does it."""
        tf = self._tf
        shape = tf.shape(x)
        steps = shape[0] if lengths is None else tf.reduce_max(lengths)
        call = self._block_lstm_call(x, weights["kernel"], weights["bias"], steps)
        found = tf.raw_ops.BlockLSTM(**call, cell_clip=-1.0)
        if lengths is None:
            return found.h, [found.cs[-1], found.h[-1]]
        mask = tf.transpose(tf.sequence_mask(lengths, shape[0], tf.float32))
        ends = tf.stack([lengths - 1, tf.range(shape[1])], 1)  # no row is empty
        states = [tf.gather_nd(values, ends) for values in (found.cs, found.h)]
        return found.h * mask[:, :, None], states

    def _gru(self, x, weights, lengths):
        names = ["gates/kernel", "candidate/kernel", "gates/bias", "candidate/bias"]
        found = block_gru_ops.block_gru(x, *(weights[n] for n in names), sequence_length=lengths)
        return found.h, [found.h_last]


SIDES = {"ours": Ours, "layer": Layer, "unrewritten": Unrewritten, "tensorflow": TensorFlow}

if __name__ == "__main__":
    answer(serve(SIDES, Net), (LoopError, blockcell.LibraryError))
