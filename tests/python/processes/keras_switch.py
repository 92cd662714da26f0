"""What `enable`, `disable`, `report` and the layers of `blockcell.keras` do to a process."""

import contextlib
import logging
import unittest.mock

import numpy as np
import tensorflow as tf

import blockcell
import keras_models
from blockcell import tf_internals
from blockcell.keras import exports, reasons
from keras_models import KERAS2, on_kernels

layers = tf.keras.layers
NUMBERS = keras_models.random(4, 5, 3)
METHOD = tf_internals.loop_of_layers()


def prepare():
    blockcell.load()


def model_of(*recurrent, **arguments):
    first = tf.keras.Input(NUMBERS.shape[1:])
    last = first
    for layer in recurrent:
        last = layer(last)
    model = tf.keras.Model(first, layers.Dense(1)(last))
    model.compile("sgd", "mse", **arguments)
    return model


@contextlib.contextmanager
def log():
    """Gives the list of messages that the package logs."""
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append((record.levelname, record.getMessage()))
    logger = logging.getLogger("blockcell")
    logger.addHandler(handler)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield messages
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def models_that_have_run():
    """A model keeps what it has traced: `enable` and `disable` make it trace again."""
    model = model_of(layers.LSTM(4, name="ran"))
    model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
    before = model.predict(NUMBERS, verbose=0)
    with on_kernels() as calls:
        np.testing.assert_allclose(model.predict(NUMBERS, verbose=0), before, atol=1e-5)
        assert calls == ["ran"]
        model.evaluate(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
        model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
        assert calls == ["ran"] * 3
    after = model.predict_function
    with on_kernels():
        assert model.predict_function is not after
    model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
    assert calls == ["ran"] * 3


def enabled_while_fitting():
    class Enabling(tf.keras.callbacks.Callback):
        def on_epoch_begin(self, epoch, logs=None):
            if epoch == 1:
                blockcell.keras.enable()

    model = model_of(layers.LSTM(4))
    try:
        losses = model.fit(
            NUMBERS, NUMBERS[:, 0, :1], epochs=3, callbacks=[Enabling()], verbose=0
        ).history["loss"]
    finally:
        blockcell.keras.disable()
    assert losses[0] > losses[1] > losses[2]


def model_with_its_own_make_train_function():
    class Own(tf.keras.Sequential):
        def make_train_function(self):
            super().make_train_function()
            return self.train_function

    model = Own([layers.GRU(4, name="own_function"), layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
    with on_kernels() as calls:
        model.fit(NUMBERS, NUMBERS[:, 0, :1], verbose=0)
    assert calls == ["own_function"]


def disable_puts_back():
    def there():
        found = [getattr(getattr(layers, name), METHOD) for name in ("LSTM", "GRU", "RNN")]
        return found + [getattr(owner, name) for owner, name in exports._exporting_methods()]

    stock = there()
    blockcell.keras.disable()
    blockcell.keras.enable()
    ours = there()
    blockcell.keras.enable()
    assert there() == ours and not set(ours) & set(stock)
    blockcell.keras.disable()
    assert there() == stock
    blockcell.keras.disable()
    assert there() == stock


def nobody_elses_method_is_removed():
    stock = getattr(layers.LSTM, METHOD)
    blockcell.keras.enable()
    ours = getattr(layers.LSTM, METHOD)

    def theirs(self, *args, **kwargs):
        return ours(self, *args, **kwargs)

    try:
        setattr(layers.LSTM, METHOD, theirs)
        blockcell.keras.disable()
        assert getattr(layers.LSTM, METHOD) is theirs
        assert layers.LSTM(4)(NUMBERS).shape == (4, 4)
    finally:
        setattr(layers.LSTM, METHOD, stock)


class OwnCell(layers.LSTMCell):
    """A cell that may compute anything."""


def with_own_cell():
    layer = layers.LSTM(4)
    layer.cell = OwnCell(4)
    return layer


# What makes a layer that the kernels do not serve, and words of the reason.
REFUSED = {
    "activation": (
        lambda: layers.LSTM(4, activation="softmax"),
        "activation is softmax, and the kernels support tanh, sigmoid, relu, linear, "
        "hard_sigmoid, softsign, softplus, elu, selu",
    ),
    "own_activation": (lambda: layers.GRU(4, activation=lambda x: x), "activation is <lambda>"),
    "recurrent_activation": (
        lambda: layers.GRU(4, recurrent_activation="softmax"),
        "recurrent_activation is softmax, and",
    ),
    "unroll": (lambda: layers.GRU(4, unroll=True), "unroll is True"),
    "dtype": (lambda: layers.LSTM(4, dtype="float64"), "it computes in float64"),
    "cell": (with_own_cell, "its cell is a OwnCell, not Keras's LSTMCell"),
}
if not KERAS2:
    REFUSED["use_cudnn"] = (lambda: layers.GRU(4, use_cudnn=False), "use_cudnn is False")


def refused_layers():
    """Keras's own path runs, which is said once; the report says the same."""
    for name, (make, words) in REFUSED.items():
        keras_models.seed(5)
        want = np.asarray(make()(NUMBERS))
        with on_kernels() as calls, log() as messages:
            keras_models.seed(5)
            layer = make()
            got = np.asarray(layer(NUMBERS))
            layer(NUMBERS)
            (record,) = blockcell.keras.report(model_of(layer))
        assert not calls, name
        np.testing.assert_array_equal(got, want)
        ((level, message),) = messages
        assert level == "WARNING" and f"{layer.name}: Keras's own path runs, because " in message
        assert words in message, message
        assert (record.layer, record.path) == (layer.name, "keras")
        assert record.reason in message, record


# What keeps training from the kernels, and not inference.
TRAINED = {
    "recurrent_dropout": (
        lambda: layers.LSTM(4, recurrent_dropout=0.25),
        "recurrent_dropout is 0.25",
    ),
    "implementation": (
        lambda: layers.RNN(layers.GRUCell(4, dropout=0.5, implementation=1)),
        "implementation=1 has a dropout mask for each gate",
    ),
}


def layers_refused_in_training():
    for name, (make, words) in TRAINED.items():
        layer = make()
        keras_models.seed(5)
        infers, trains = layer(NUMBERS, training=False), layer(NUMBERS, training=True)
        with on_kernels() as calls, log() as messages:
            np.testing.assert_allclose(layer(NUMBERS, training=False), infers, atol=1e-6)
            assert calls == [layer.name] and not messages, name
            assert np.abs(np.asarray(trains) - np.asarray(infers)).max() > 1e-3
            layer(NUMBERS, training=True)
            ((_, message),) = messages
            assert calls == [layer.name] and words in message, name
            (record,) = blockcell.keras.report(model_of(layer))
        assert record.path == "blockcell" and words in record.reason


def float64_inputs():
    x = tf.constant(NUMBERS, tf.float64)
    layer = layers.LSTM(4, **({"autocast": False} if KERAS2 else {}))
    layer.build(x.shape)
    assert reasons.of_call(layer, x, True) == "its inputs are float64, and it computes in float32"
    assert reasons.of_call(layer, tf.cast(x, tf.float32), True) is None


def gpu():
    """Where there is a GPU, Keras's path stays, and that is no warning."""
    devices = unittest.mock.patch.object(tf.config, "list_logical_devices", lambda kind=None: [1])
    layer = layers.LSTM(4)
    with on_kernels() as calls, log() as messages, devices:
        (record,) = blockcell.keras.report(model_of(layer))
        refused = blockcell.keras.dispatch.refused(layer, tf.constant(NUMBERS), True)
    assert refused and not calls
    assert record.path == "keras" and "GPU" in record.reason
    assert [level for level, _ in messages] == ["INFO"]


def function_compiled_by_xla():
    layer = layers.LSTM(4)
    with on_kernels() as calls, log() as messages:
        want = layer(NUMBERS)
        assert len(calls) == 1
        got = tf.function(layer, jit_compile=True)(NUMBERS)
        inner = tf.function(lambda x: layer(x))
        np.testing.assert_allclose(
            tf.function(lambda x: inner(x), jit_compile=True)(NUMBERS), want, atol=1e-5
        )
    assert len(calls) == 1
    np.testing.assert_allclose(got, want, atol=1e-5)
    assert "jit_compile" in messages[0][1]


def no_rows():
    """Keras's own path refuses batches of no rows outside of functions."""
    with on_kernels() as calls:
        for kind in (layers.LSTM, layers.GRU):
            x = tf.zeros([0, 5, 3])
            layer = kind(4, return_sequences=True, return_state=True)
            with tf.GradientTape() as tape:
                found = layer(x)
                found += layer(x, mask=tf.zeros([0, 5], tf.bool))
                loss = tf.add_n([tf.reduce_sum(one) for one in found])
            assert {tuple(one.shape) for one in found} == {(0, 5, 4), (0, 4)}
            for gradient in tape.gradient(loss, list(layer.trainable_variables)):
                assert not np.any(gradient)
    assert len(calls) == 4


def no_steps():
    """An error, as on Keras's own path, or the state before the first step."""
    with on_kernels():
        for mask in (None, tf.zeros([2, 0], tf.bool)):
            try:
                state = layers.GRU(4)(tf.zeros([2, 0, 3]), mask=mask)
            except (tf.errors.InvalidArgumentError, ValueError):
                continue
            np.testing.assert_array_equal(state, np.zeros([2, 4]))


def report_of_a_model():
    class Own(layers.GRU):
        pass

    def own(self, inputs, *args, **kwargs):
        return getattr(layers.GRU, METHOD)(self, inputs, *args, **kwargs)

    setattr(Own, METHOD, own)
    model = model_of(
        layers.Bidirectional(layers.LSTM(4, return_sequences=True, name="both")),
        layers.LSTM(4, return_sequences=True, unroll=True, name="unrolled"),
        layers.SimpleRNN(4, return_sequences=True, name="simple"),
        Own(4, name="own"),
    )
    paths = {record.layer: record.path for record in blockcell.keras.report(model)}
    assert set(paths.values()) == {"keras"} and len(paths) == 5, paths
    with on_kernels():
        report = blockcell.keras.report(model)
    found = {record.layer: record for record in report}
    assert {name for name in found if found[name].path == "blockcell"} == {
        "forward_both",
        "backward_both",
    }
    assert found["forward_both"].reason == "" and found["forward_both"].type == "LSTM"
    assert found["unrolled"].reason == "unroll is True"
    assert found["simple"].reason == (
        "the kernels support the layers LSTM and GRU, and it is a SimpleRNN"
    )
    assert found["own"].reason == f"Own has a method {METHOD} of its own"
    lines = str(report).splitlines()
    assert lines[0].split() == ["layer", "type", "path", "runs", "reason"]
    assert any(line.split() == ["forward_both", "LSTM", "blockcell", "0"] for line in lines)
    assert any(" ".join(line.split()) == "unrolled LSTM keras 0 unroll is True" for line in lines)


def report_of_a_model_compiled_by_xla():
    with on_kernels():
        (record,) = blockcell.keras.report(model_of(layers.LSTM(4), jit_compile=True))
        assert record.path == "keras" and "jit_compile" in record.reason
        (record,) = blockcell.keras.report(model_of(layers.LSTM(4)))
        assert record.path == "blockcell"


def other_backends():
    """One error that says what to do."""
    import keras

    for backend in ("jax", "torch"):
        with unittest.mock.patch.object(keras.backend, "backend", lambda name=backend: name):
            for use in (blockcell.keras.enable, lambda: blockcell.keras.LSTM):
                try:
                    use()
                except RuntimeError as error:
                    assert str(error) == (
                        "blockcell.keras supports Keras on TensorFlow, but Keras's backend is "
                        f"{backend}: set KERAS_BACKEND=tensorflow before Keras is imported"
                    )
                    continue
                raise AssertionError("no error")
    assert not blockcell.keras.hooks.enabled()


def layers_by_name():
    """They are Keras's layers in all but what runs them; `enable` is not needed."""
    for kind in ("LSTM", "GRU"):
        theirs, ours = getattr(layers, kind), getattr(blockcell.keras, kind)
        arguments = {"return_sequences": True, "go_backwards": True, "name": "same"}
        stock, layer = theirs(4, **arguments), ours(4, **arguments)
        assert isinstance(layer, theirs) and ours.__name__ == kind
        assert layer.get_config() == stock.get_config()
        assert ours.from_config(stock.get_config()).get_config() == stock.get_config()
        want = stock(NUMBERS)
        layer.build(NUMBERS.shape)
        assert [w.shape for w in layer.weights] == [w.shape for w in stock.weights]
        layer.set_weights(stock.get_weights())
        with on_kernels(on=False) as calls:
            np.testing.assert_allclose(layer(NUMBERS), want, atol=1e-5)
            stock(NUMBERS)
        assert calls == ["same"] and layer.uses_blockcell, calls
        (record,) = blockcell.keras.report(model_of(ours(4)))
        assert record.path == "blockcell"
        refused = ours(4, activation="softmax")
        with on_kernels(on=False) as calls:
            refused(NUMBERS)
        assert not calls and not refused.uses_blockcell
        both = layers.Bidirectional(ours(4))
        with on_kernels(on=False) as calls:
            both(NUMBERS)
        assert len(calls) == 2
