"""The sides of the comparison: see `blockcell_tools.bench.side`."""

import os
import platform

import numpy as np

import blockcell
from bench.predict.nets import PREDICT


class Keras:
    """Keras alone."""

    def __init__(self, name, job):
        """Starts TensorFlow on as many threads as the job says."""
        import tensorflow as tf

        del name
        tf.config.set_visible_devices([], "GPU")
        tf.config.threading.set_intra_op_parallelism_threads(job["threads"])
        tf.config.threading.set_inter_op_parallelism_threads(job["threads"])
        self._tf = tf

    def about(self):
        """Versions."""
        keras = self._tf.keras.__version__
        versions = {"tensorflow": self._tf.__version__, "keras": keras}
        return {"versions": dict(versions, python=platform.python_version())}

    def prepare(self, net, arrays):
        """Makes the model with weights of a seed, and calls it once."""
        keras, x = self._tf.keras, arrays["x"]
        keras.backend.clear_session()
        layer = getattr(keras.layers, net.cell)(net.units)
        shape = [net.time, net.input_size]
        model = keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(10)])
        random = np.random.RandomState(1)
        for weight in model.weights:
            limit = 1.0 / np.sqrt(weight.shape[0])
            weight.assign(random.uniform(-limit, limit, weight.shape))
        if net.call == PREDICT:
            self.run = lambda: model.predict(x, batch_size=net.batch, verbose=0)
        else:
            self.run = lambda: model.predict_on_batch(x)
        self.calls = net.batches
        self._model = model
        self.run()

    def results(self):
        """The output by name."""
        return {"output": np.asarray(self.run())}


class PathError(Exception):
    """A layer ran on Keras's own path."""


class Ours(Keras):
    """Keras after the one line."""

    def __init__(self, name, job):
        """Loads the library, and switches it on."""
        super().__init__(name, job)
        os.environ.pop(
            "BLOCKCELL_OVERRIDE", None
        )  # workers run without, for others to compare kernels
        blockcell.load(job["library"])
        blockcell.keras.enable()

    def about(self):
        """Versions and instruction set."""
        info = blockcell.info()
        versions = dict(super().about()["versions"], blockcell=info["version"])
        return {"versions": versions, "isa": info["isa"]}

    def prepare(self, net, arrays):
        """Makes the model, and checks what runs its layer."""
        super().prepare(net, arrays)
        paths = [record.path for record in blockcell.keras.report(self._model)]
        if paths != ["blockcell"]:
            raise PathError(f"{net}: the layer runs on {paths}")
