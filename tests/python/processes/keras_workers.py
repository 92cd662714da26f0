"""Models that several workers train together by `fit`, for `test_workers`.

As a program, `keras_workers.py WORKER KERNELS`, it is one of two workers.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys

import numpy as np
import tensorflow as tf

import blockcell


def two_replicas():
    """Losses of two replicas in one process, on Keras's path and on the kernels; runs there."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    both = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, both)

    def strategy():
        return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    return [_train(strategy(), on) for on in (False, True)]


def two_workers():
    """The same of two workers, each a process: of each kind, what each worker says."""
    return [_workers(on) for on in (False, True)]


def _train(strategy, on):
    random = np.random.RandomState(0)
    x = random.standard_normal([32, 7, 3]).astype("f")
    y = x.sum((1, 2))[:, np.newaxis]
    layers = tf.keras.layers
    with blockcell.keras.enable() if on else contextlib.nullcontext():
        with strategy.scope():
            tf.random.set_seed(3)
            model = tf.keras.Sequential(
                [
                    tf.keras.Input([7, 3]),
                    layers.LSTM(5, return_sequences=True, **_initializers(1)),
                    layers.GRU(4, **_initializers(3)),
                    layers.Dense(1, kernel_initializer=_glorot(5)),
                ]
            )
            model.compile("sgd", "mse")
        data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
        losses = model.fit(data, epochs=3, verbose=0).history["loss"]
        return losses, [one.runs for one in blockcell.keras.report(model)]


def _initializers(seed):
    return {
        "kernel_initializer": _glorot(seed),
        "recurrent_initializer": _glorot(seed + 1),
    }


def _glorot(seed):
    return tf.keras.initializers.GlorotUniform(seed)


def _workers(on):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    addresses = ["{}:{}".format(*one.getsockname()) for one in sockets]
    for one in sockets:
        one.close()
    processes = []
    for index in range(2):
        task = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, str(index), str(int(on))],
                env=dict(os.environ, TF_CONFIG=json.dumps(task), PYTHONPATH=":".join(sys.path)),
                stdout=subprocess.PIPE,
            )
        )
    said = [process.communicate(timeout=240)[0] for process in processes]
    assert not any(process.returncode for process in processes)
    return [json.loads(text.splitlines()[-1]) for text in said]


if __name__ == "__main__":
    kind = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
    kind = kind or tf.distribute.experimental.MultiWorkerMirroredStrategy
    print(json.dumps(_train(kind(), sys.argv[2] == "1")))
