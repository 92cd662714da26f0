"""The sides of the comparison: see `blockcell_tools.bench.side`."""

import blockcell
from bench.nets import weights
from bench.predict.nets import PREDICT, Net
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.tensorflow_side import TensorFlowSide, WithLibrary
from blockcell_tools.bench.worker import answer


class Keras(TensorFlowSide):
    """Keras alone."""

    def __init__(self, name, job):
        """Starts TensorFlow on as many threads as the job says."""
        super().__init__(name, job)
        self._tf.config.set_visible_devices([], "GPU")
        self._set_threads()

    def about(self):
        """Versions."""
        versions = super().about()["versions"]
        return {"versions": dict(versions, keras=self._tf.keras.__version__)}

    def prepare(self, net, arrays):
        """Makes the model with weights of a seed, and calls it once."""
        keras, x = self._tf.keras, arrays["x"]
        keras.backend.clear_session()
        layer = getattr(keras.layers, net.cell)(net.units)
        shape = [net.time, net.input_size]
        model = keras.Sequential([keras.Input(shape), layer, keras.layers.Dense(10)])
        model.set_weights(weights([tuple(weight.shape) for weight in model.weights]))
        if net.call == PREDICT:
            self.run = lambda: model.predict(x, batch_size=net.batch, verbose=0)
        else:
            self.run = lambda: model.predict_on_batch(x)
        self.calls = net.batches
        self._model = model
        self.run()

    def results(self):
        """The output by name."""
        return {"output": self.run()}


class PathError(Exception):
    """A layer ran on Keras's own path."""


class Ours(WithLibrary, Keras):
    """Keras after the one line."""

    def __init__(self, name, job):
        """Loads the library, and switches it on."""
        super().__init__(name, job)
        blockcell.keras.enable()

    def prepare(self, net, arrays):
        """Makes the model, and checks what runs its layer."""
        super().prepare(net, arrays)
        paths = [record.path for record in blockcell.keras.report(self._model)]
        if paths != ["blockcell"]:
            raise PathError(f"{net}: the layer runs on {paths}")


SIDES = {"ours": Ours, "keras": Keras}

if __name__ == "__main__":
    answer(serve(SIDES, Net), (PathError, blockcell.LibraryError))
