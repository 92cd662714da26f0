"""What a worker process does: the training of one classifier."""

import logging
import sys
import time
from typing import NamedTuple

import classifier
import numpy as np
from common import sessions


class Epoch(NamedTuple):
    """One pass over the sequences to learn from."""

    loss: float
    """Mean cross entropy, nats."""
    seconds: float
    """Duration of `fit`."""


class Trainer:
    """A classifier in training. Use it in a `with` statement."""

    def __init__(self, data, cell, units, batch, threads, library):
        """Makes the model.

        Args:
          data: The `data.Data`.
          cell: `"LSTM"` or `"GRU"`.
          units: Units of the recurrent layer.
          batch: Sequences of a training step.
          threads: Size of TensorFlow's pools within and across ops.
          library: Path of libblockcell.so; None trains without it.
        """
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        self._blockcell, self._refused = None, []
        if library is not None:
            sys.path.insert(0, str(sessions.PACKAGE))
            import blockcell

            blockcell.load(library)
            blockcell.keras.enable()  # the one line
            self._blockcell = blockcell
            handler = logging.Handler()
            handler.emit = lambda record: self._refused.append(record.getMessage())
            logging.getLogger("blockcell").addHandler(handler)
        tf.random.set_seed(1)
        self._data, self._batch = data, batch
        self._tensorflow = tf.__version__
        self._model = classifier.model(data, cell, units)
        # Keras's initial weights depend on how many random numbers were drawn before.
        random = np.random.RandomState(1)
        for weight in self._model.weights:
            if len(weight.shape) > 1:
                limit = (6 / sum(weight.shape)) ** 0.5
                weight.assign(random.uniform(-limit, limit, weight.shape))

    def __enter__(self):
        """Returns the trainer."""
        return self

    def __exit__(self, *error):
        """Has nothing to close."""

    def versions(self):
        """Returns the version of TensorFlow, and that of the library with its instruction set."""
        if self._blockcell is None:
            return self._tensorflow, None
        info = self._blockcell.info()
        return self._tensorflow, f"{info['version']} ({info['isa']})"

    def paths(self):
        """Returns what ran the recurrent layers: `["keras"]`, `["blockcell"]`, or why not."""
        if self._blockcell is None:
            return ["keras"]
        # The report tells what the arguments decide, the log what the calls did.
        return self._refused or [
            record.path for record in self._blockcell.keras.report(self._model)
        ]

    def epoch(self, number):
        """Trains for an epoch, in an order that depends on its number; returns the `Epoch`."""
        inputs, labels = self._data.train
        order = np.random.RandomState(number).permutation(len(labels))
        steps = self._steps(inputs[order], labels[order])
        start = time.perf_counter()
        history = self._model.fit(steps, verbose=0)
        return Epoch(float(history.history["loss"][0]), time.perf_counter() - start)

    def _steps(self, inputs, labels):
        """The batches of an epoch."""
        import tensorflow as tf

        # What tunes a dataset sleeps for longer and longer times, and the end of `fit` waits for
        # it to wake up. Keras makes a tuned dataset of arrays.
        options = tf.data.Options()
        if hasattr(options, "autotune"):
            options.autotune.enabled = False
        else:  # TensorFlow 2.5 and earlier
            options.experimental_optimization.autotune = False
        slices = tf.data.Dataset.from_tensor_slices((inputs, labels))
        return slices.batch(self._batch).with_options(options)

    def accuracy(self):
        """Returns the share of the test's sequences that are classified right."""
        inputs, labels = self._data.test
        return float(self._model.evaluate(inputs, labels, batch_size=self._batch, verbose=0)[1])
