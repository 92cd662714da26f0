"""Every op that the library has kernels for, as nodes of a graph on random tensors."""

import collections

import numpy as np
import tensorflow as tf

import blockcell
from blockcell import loader, op_table
from blockcell_tools.reference.cudnn import Network
from blockcell_tools.reference.inputs import inputs_of
from helpers import cudnn, grids, kernels

v1 = tf.compat.v1

# A call: its name, arrays and lists of them by the names of inputs, and what makes outputs of both.
Call = collections.namedtuple("Call", "name inputs outputs")

Sizes = collections.namedtuple("Sizes", "batch input_size cell_size time")

SMALL = Sizes(2, 3, 4, 2)


def calls(sizes=SMALL):
    """One call of every op, of each element type and switch."""
    return [*_of_table(sizes), *_of_cudnn(sizes), *_of_lists(sizes)]


def _of_table(sizes):
    for op, dtype, on in op_table.variants():
        inputs = inputs_of(op, *sizes[:3], time=sizes.time, dtype=dtype, **on)
        yield Call(
            grids.name(op, dtype, on),
            inputs,
            lambda tensors, op=op, on=on: list(kernels.call(op, tensors, **on).values()),
        )


def _of_cudnn(sizes):
    for mode in cudnn.MODES:
        network = Network(mode, sizes.cell_size, sizes.input_size, 2, 2)
        for dtype in (np.float32, np.float16):
            inputs = cudnn.inputs_of(network, sizes.time, sizes.batch, dtype=dtype)
            for version in cudnn.VERSIONS:
                yield from _passes(network, version, dtype, inputs)
        yield _canonical(network)


def _passes(network, version, dtype, inputs):
    names = cudnn.FORWARD_INPUTS[: 5 if version == 3 else 4]
    for training in (False, True):

        def outputs(tensors, training=training):
            found = cudnn.forward_op(version, tensors, is_training=training, **network.attributes)
            if training:
                back = cudnn.backprop_op(version, {**tensors, **found}, **network.attributes)
                found = {**found, **back}
            # The reserve space is for nobody else to read.
            return [
                tensor
                for name, tensor in found.items()
                if name not in ("host_reserved", "reserve_space")
                and (network.rnn_mode == "lstm" or "_c" not in name)
            ]

        word = "Backprop" if training else ""
        chosen = {n: inputs[n] for n in inputs if n in names or (training and n[-8:] == "backprop")}
        name = f"CudnnRNN{word}{cudnn.suffix(version)} {network.rnn_mode} {np.dtype(dtype).name}"
        yield Call(name, chosen, outputs)


def _canonical(network):
    """The ops on parameters, there and back."""
    names = ("num_layers", "num_units", "input_size")
    own = {**{name: getattr(network, name) for name in names}, **network.attributes}
    count = 2 * network.gates * network.pseudo_layers

    def outputs(tensors):
        parts = tf.raw_ops.CudnnRNNParamsToCanonical(
            params=tensors["params"], num_params=count, **own
        )
        back = tf.raw_ops.CudnnRNNCanonicalToParams(
            weights=parts.weights, biases=parts.biases, **own
        )
        size = tf.raw_ops.CudnnRNNParamsSize(T=tf.float32, S=tf.int32, **own)
        return [*parts.weights, *parts.biases, back, size]

    params = cudnn.params_of(network, np.random.RandomState(3)).astype(np.float32)
    return Call(f"CudnnRNNParamsToCanonical {network.rnn_mode}", {"params": params}, outputs)


def _of_lists(sizes):
    batch, columns, cell, time = sizes
    random = np.random.RandomState(7)
    for dtype in (np.float32, *op_table.OF_16_BITS):

        def some(*shape, dtype=dtype):
            return random.uniform(-1, 1, shape).astype(dtype)

        gate, x = (batch, cell), some(batch, columns)
        weights = some(columns + cell, 4 * cell)
        lstm = dict(x=x, h_prev=some(*gate), w=weights, b=some(4 * cell))
        two = dict(w=some(columns, 4 * cell), w_h=[some(cell, 4 * cell)])
        sequence = dict(time=np.int32(time), rounds=[np.int32(time)])
        sequence.update(sequence_length=[], x=some(time, batch, columns), h_prev=some(*gate))
        gru = dict(w_ru=some(columns + cell, 2 * cell), w_c=some(columns + cell, cell))
        gru.update(b_ru=some(2 * cell), b_c=some(cell))
        ended = np.arange(batch, dtype=np.int32) % (time + 1)
        peepholes = [some(cell) for _ in range(3)]
        norms = {name: [some(cell) for _ in range(5)] for name in ("gamma", "beta")}
        normalized = dict(x=x, h_prev=lstm["h_prev"], w=weights, **norms)
        lstm_grad = {name: some(*gate) for name in ("i", "f", "o", "ci", "co")}
        lstm_grad.update(cs_prev=[some(*gate)], cs_grad=[some(*gate), some(1, cell)])
        lstm_grad.update(h_grad=[some(*gate)])
        layer = dict(size=np.int32(time), rounds=[np.int32(time)], mask=[some(time, batch, 1) > 0])
        layer.update(before=[some(*gate)], x=some(time, batch, columns), h_prev=some(*gate))
        keras_lstm = dict(layer, cs_prev=some(*gate), w_x=some(columns, 4 * cell))
        keras_lstm.update(w_h=some(cell, 4 * cell), b=some(4 * cell))
        keras_gru = dict(layer, w_x=some(columns, 3 * cell), w_h=some(cell, 3 * cell))
        keras_gru.update(b_x=some(3 * cell), b_h=some(3 * cell))
        all_calls = [
            (
                "mat_mul_add_n",
                dict(
                    a=[x, some(batch, columns)], b=[some(*gate)] * 2, addends=[some(columns, cell)]
                ),
            ),
            (
                "mat_mul_slice",
                dict(a=x, b=some(3 * cell, columns)),
                dict(num_parts=2, begins=[0, cell], sizes=[cell, -1]),
            ),
            ("bias_add_grad_add_n", dict(out_backprop=[some(*gate)] * 2, addends=[some(cell)])),
            ("lstm_cell", dict(lstm, cs_prev=[], peepholes=[], w_h=[])),
            ("lstm_cell", dict(lstm, cs_prev=[some(1, cell)], peepholes=[], w_h=[])),
            ("lstm_cell", dict(lstm, cs_prev=[some(*gate)], peepholes=peepholes, w_h=[])),
            ("lstm_cell", dict({**lstm, **two}, cs_prev=[], peepholes=[])),
            ("lstm_cell_grad", dict(lstm_grad, peepholes=[], cs=[]), dict(num_through_peepholes=0)),
            (
                "lstm_cell_grad",
                dict(lstm_grad, peepholes=peepholes, cs=[some(*gate)]),
                dict(num_through_peepholes=2),
            ),
            (
                "lstm_cell_grad",
                dict(lstm_grad, peepholes=[], cs=[]),
                dict(num_through_peepholes=0, cell_clip=0.3),
            ),
            (
                "lstm_cell",
                dict(lstm, cs_prev=[some(*gate)], peepholes=[], w_h=[]),
                dict(activation="relu", recurrent_activation="hard_sigmoid"),
            ),
            (
                "lstm_cell_grad",
                dict(lstm_grad, peepholes=[], cs=[]),
                dict(num_through_peepholes=0, activation="relu"),
            ),
            ("gru_cell", dict(x=x, h_prev=some(*gate), **gru)),
            ("gru_cell", dict(x=x, h_prev=some(*gate), **gru), dict(activation="linear")),
            ("gru_cell_grad_c", {name: some(*gate) for name in ("u", "h_prev", "c", "d_h")}),
            (
                "gru_cell_grad_ru",
                {name: some(*gate) for name in ("r", "h_prev", "d_u_bar", "d_hr")},
            ),
            (
                "lstm_layer",
                dict(
                    sequence,
                    **dict(cs_prev=some(*gate), w=weights, b=lstm["b"], peepholes=peepholes),
                    **dict(w_h=[], projection=[]),
                ),
            ),
            (
                "lstm_layer",
                dict(
                    sequence,
                    **dict(cs_prev=some(*gate), b=lstm["b"], peepholes=[], **two),
                    projection=[some(cell, cell)],
                ),
                dict(proj_clip=0.3),
            ),
            ("layer_norm_lstm_cell", dict(normalized, cs_prev=[])),
            ("layer_norm_lstm_cell", dict(normalized, cs_prev=[some(*gate)])),
            ("layer_norm_lstm_cell", dict(normalized, cs_prev=[some(1, cell)])),
            (
                "layer_norm",
                dict(x=some(*gate), gamma=some(cell), beta=some(cell)),
                dict(epsilon=1e-3, axis=1, bias=0.5),
            ),
            (
                "layer_norm_grad",
                dict(x=some(*gate), gamma=some(cell), dy=some(*gate)),
                dict(epsilon=1e-3),
            ),
            (
                "layer_norm_grad",
                dict(x=some(batch, 1), gamma=some(cell), dy=some(1, cell)),
                dict(epsilon=1e-3, rows=batch),
            ),
            (
                "layer_norm_lstm_layer",
                dict(sequence, **norms, w=weights, cs_prev=some(*gate), sequence_length=[ended]),
            ),
            ("keras_lstm", keras_lstm),
            ("keras_lstm", keras_lstm, dict(recurrent_activation="hard_sigmoid_keras2")),
            ("keras_gru", keras_gru),
            ("keras_gru", keras_gru, dict(activation="relu")),
            ("gru_layer", dict(sequence, **gru)),
            ("gru_layer", dict(sequence, **gru, sequence_length=[ended])),
        ]
        for number, (name, inputs, *attributes) in enumerate(all_calls):
            if "layer_norm" in name and dtype != np.float32:
                continue
            yield _of_module(f"{name} {np.dtype(dtype).name} {number}", name, inputs, *attributes)


def _of_module(title, name, inputs, attributes=None):
    def outputs(tensors):
        given = dict(tensors, **(attributes or {}))
        found = getattr(loader.module(), "blockcell_" + name)(**given)
        return tf.nest.flatten(found)

    return Call("blockcell_" + title, inputs, outputs)


class Runner:
    """A session with a call's nodes, on inputs that are constants of the graph."""

    def __init__(self, call, copies=1, threads=1):
        self.name = call.name
        config = v1.ConfigProto(
            intra_op_parallelism_threads=threads,
            inter_op_parallelism_threads=1,
        )
        # Nodes that are alike would become one, and those on constants would run once.
        config.graph_options.optimizer_options.opt_level = -1
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        with tf.Graph().as_default() as graph, kernels.labelled():
            tensors = {name: _constants(value) for name, value in call.inputs.items()}
            self._outputs = [call.outputs(tensors) for _ in range(copies)]
            # Every output has a reader: TensorFlow 2 tells a kernel which ones have.
            shapes = [tf.shape(tensor) for outputs in self._outputs for tensor in outputs]
            self._all = tf.group(*shapes)
        self._session = v1.Session(graph=graph, config=config)

    def values(self):
        return self._session.run(self._outputs[0])

    def run(self):
        """Runs all copies, and takes nothing out of TensorFlow."""
        self._session.run(self._all)

    def close(self):
        self._session.close()


def _constants(value):
    return [tf.constant(one) for one in value] if isinstance(value, list) else tf.constant(value)


def main():
    """Runs every call once, for `scripts/memcheck.py`."""
    blockcell.load(take_over=False)
    done = 0
    for call in calls():
        Runner(call).run()
        done += 1
    print(f"{done} calls")


if __name__ == "__main__":
    main()
