"""The process of one side of a model's comparison: see `blockcell_tools.bench.side`."""

import os

import numpy as np

import blockcell
from blockcell import loader
from blockcell_tools import cudnn_verification, graph_nodes, keras_nodes
from blockcell_tools.bench.machine import resident
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.tensorflow_side import TensorFlowSide, WithLibrary
from blockcell_tools.bench.worker import answer
from blockcell_tools.comparison import graph_step, models
from blockcell_tools.comparison.models import OF_INFO, Call, ModelError


class TensorFlow(TensorFlowSide):
    """A model as TensorFlow and Keras run it."""

    DEVICES = {}

    def __init__(self, name, job):
        """Starts TensorFlow."""
        super().__init__(name, job)
        self._is_1 = self._tf.__version__.startswith("1.")
        self._step, self._state = "a call", dict
        self._library, self._notes = job["library"], []
        if self._is_1:
            self._open()
            self._tf.compat.v1.keras.backend.set_session(self._session)
        else:
            self._set_threads()

    def about(self):
        """Versions, what a step is, the most memory so far, and what the reader has to know."""
        about = dict(step=self._step, memory=resident()["VmHWM"], notes=self._notes)
        return dict(super().about(), **about)

    def prepare(self, call, random):
        """Reads the model, and makes `run`."""
        self._load_if_needed(call)
        makers = {
            models.KERAS: self._keras_model,
            models.SAVED_MODEL: self._in_session if self._is_1 else self._function,
            models.GRAPH: self._graph,
        }
        make = makers[models.kind_of(call.file)]
        self.run = make(call, random)
        self.run()
        # As often on both sides: a training step changes what the next one returns.
        self._watched_run(call)

    def _watched_run(self, call):
        """A run like all others, and what is found out of it."""
        del call
        self.run()

    def _load_if_needed(self, call):
        """Loads the library for a graph with cuDNN's ops, to compare int8 with float32."""
        if models.kind_of(call.file) == models.KERAS or not _has_cudnn(call.file):
            return
        if (os.environ.get(loader.WEIGHTS_VARIABLE) or "float32") == "float32":
            raise ModelError(
                "TensorFlow has no kernels of cuDNN's ops on CPUs, so there is no baseline: use "
                "blockcell verify --graph, or --weights int8 to compare int8 with float32"
            )
        blockcell.load(self._library, take_over=False, weights="float32")
        self._notes = [
            "TensorFlow has no kernels of cuDNN's ops on CPUs: those without are blockcell's in "
            "float32."
        ]

    def results(self):
        """The results that are floats, and variables after training, as arrays by name."""
        found = self.run()
        if not isinstance(found, dict):
            many = found if isinstance(found, (list, tuple)) else [found]
            found = {f"output {number}": one for number, one in enumerate(many)}
        arrays = {name: np.asarray(one) for name, one in {**found, **self._state()}.items()}
        return {name: one for name, one in arrays.items() if one.dtype.kind == "f"}

    def _keras_model(self, call, random):
        self._model = self._tf.keras.models.load_model(call.file, compile=False)
        arrays = [call.array(one.name, one.shape, one.dtype, random) for one in self._model.inputs]
        fed = arrays if len(arrays) > 1 else arrays[0]
        return lambda: self._model.predict_on_batch(fed)

    def _function(self, call, random):
        """The signature that serves, as TensorFlow 2 calls it."""
        self._loaded = self._tf.saved_model.load(call.file)
        signature = self._loaded.signatures[call.signature]
        specs = signature.structured_input_signature[1]
        fed = {
            name: self._tf.constant(call.array(name, spec.shape, spec.dtype, random))
            for name, spec in sorted(specs.items())
        }
        return lambda: {name: one.numpy() for name, one in signature(**fed).items()}

    def _graph(self, call, random):
        """A graph of TensorFlow 1.x; if it trains, its variables are compared, too."""
        self._config.allow_soft_placement = True
        step = graph_step.read(call, random)
        self._open(step.graph)
        step.initialize(self._session)
        if step.trains:
            self._step = "a training step"
            self._state = lambda: self._session.run(step.variables)
        return lambda: self._session.run(step.fetched, step.fed)

    def _in_session(self, call, random):
        """The same in a session."""
        meta_graph = self._tf.compat.v1.saved_model.load(self._session, ["serve"], call.file)
        signature = meta_graph.signature_def[call.signature]
        fed = {
            info.name: call.array(
                name,
                self._tf.TensorShape(info.tensor_shape),
                self._tf.as_dtype(info.dtype),
                random,
            )
            for name, info in sorted(signature.inputs.items())
        }
        fetched = {name: info.name for name, info in signature.outputs.items()}
        return lambda: self._session.run(fetched, fed)


class Ours(WithLibrary, TensorFlow):
    """The same with the library loaded, and Keras's layers on its kernels."""

    def __init__(self, name, job):
        """Loads the library."""
        super().__init__(name, job)
        self._ran, self._layers, self._int8_errors = {}, [], {}
        try:
            blockcell.keras.enable()
        except (ImportError, RuntimeError):
            self._has_keras = False  # Another backend, or no Keras at all.
        else:
            self._has_keras = True

    def about(self):
        """Also the precision of products, runs of kernels in a call, and the model's layers."""
        info = self._info()
        return dict(
            super().about(),
            **{name: info[name] for name in OF_INFO},
            **{"ran": self._ran, "layers": self._layers, "int8_errors": self._int8_errors},
        )

    def _load_if_needed(self, call):
        """It is loaded."""

    def _watched_run(self, call):
        """Finds out what runs on the kernels."""
        before = blockcell.info()
        with blockcell.int8_errors() as self._int8_errors:
            super()._watched_run(call)
        after = blockcell.info()
        self._ran = _more(before["runs"], after["runs"])
        if self._has_keras and keras_nodes.is_file(call.file):
            by_enable = sum(_more(before["labels"], after["labels"]).values())
            by_passes = sum(self._ran.get(op, 0) for op in _OF_LAYERS) - by_enable
            self._layers = _not_on_kernels(blockcell.keras.report(self._model), by_passes)


_OF_LAYERS = (
    *("BlockLSTMV2", "BlockGRU", "BlockcellLSTM", "BlockcellKerasLSTM", "BlockcellKerasGRU"),
    *("BlockcellLSTMLayer", "BlockcellGRULayer", "CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
)
"""Ops that stand for a whole layer."""


def _has_cudnn(file):
    """Whether a graph has nodes of cuDNN's ops. Those in functions of Keras have a loop, too."""
    graphs = [one.graph_def for one in graph_nodes.meta_graphs(file)]
    return any(node.op in cudnn_verification.OPS for graph in graphs for node in graph.node)


def _more(before, after):
    """How much more there is of what there is more of."""
    return {name: n - before.get(name, 0) for name, n in after.items() if n > before.get(name, 0)}


def _not_on_kernels(report, by_passes):
    """The layers that do not run on the kernels, each with the reason.

    Args:
      report: Of all layers: it knows what `enable()` serves.
      by_passes: How many others the graph passes have put on the kernels. If not all, it is not
        known which.
    """
    kept = [one for one in report if one.path != "blockcell"]
    if by_passes >= len(kept):
        return []
    some = f"; graph passes replace {by_passes} of {len(kept)} such layers" if by_passes else ""
    return [[one.layer, one.reason + some] for one in kept]


SIDES = {"ours": Ours, "tensorflow": TensorFlow}

if __name__ == "__main__":
    answer(serve(SIDES, Call), (ModelError, graph_nodes.GraphFileError, blockcell.LibraryError))
