"""What `enable` holds for, what it says, and what it counts."""

import collections
import copy
import unittest.mock

import numpy as np
import tensorflow as tf

import blockcell
import keras_models
from blockcell.keras import arguments, environment, scope
from keras_models import KERAS2, on_kernels
from keras_switch import NUMBERS, log, model_of

layers = tf.keras.layers


def prepare():
    blockcell.load()


def context_manager():
    layer = layers.LSTM(4)
    with on_kernels(on=False) as calls:
        with blockcell.keras.enable():
            assert blockcell.keras.enabled()
            layer(NUMBERS)
            with blockcell.keras.enable():
                pass
            assert blockcell.keras.enabled()  # The outer one holds.
        assert not blockcell.keras.enabled()
        layer(NUMBERS)
    assert len(calls) == 1


def one_model():
    """The kernels serve this model alone, and what it has traced is traced again."""
    ours = model_of(layers.LSTM(4, name="ours"))
    other = model_of(layers.LSTM(4, name="other"))
    for model in (ours, other):
        model.predict(NUMBERS, verbose=0)
    kept = other.predict_function
    with on_kernels(on=False) as calls, log() as messages:
        blockcell.keras.enable(ours)
        assert blockcell.keras.enabled(ours) and not blockcell.keras.enabled(other)
        assert not blockcell.keras.enabled()
        for model in (ours, other):
            model.predict(NUMBERS, verbose=0)
        layers.GRU(4, activation="softmax")(NUMBERS)
        assert calls == ["ours"] and other.predict_function is kept
        (record,) = blockcell.keras.report(other)
        assert record.reason == "blockcell.keras.enable() was called for other models"
        (record,) = blockcell.keras.report(ours)
        assert record.path == "blockcell"
        blockcell.keras.disable(ours)
        assert scope.get().is_empty() and not blockcell.keras.enabled(ours)
        ours.predict(NUMBERS, verbose=0)
    assert calls == ["ours"] and not messages


def weights_in_int8():
    """Of the layers of one model, in inference alone."""
    x = keras_models.random(6, 20, 40)
    ours, other = ([layers.LSTM(64, return_sequences=True)] for _ in range(2))
    ours, other = (tf.keras.Sequential([layers.Input((20, 40)), *made]) for made in (ours, other))
    other.set_weights(ours.get_weights())
    want = other.predict(x, verbose=0)

    def ran():
        return sum(blockcell.info()["runs_in_int8"].values())

    try:
        blockcell.keras.enable()
        blockcell.keras.enable(ours, weights="int8")
        before = ran()
        assert np.abs(other.predict(x, verbose=0) - want).max() < 1e-5 and ran() == before
        error = np.abs(ours.predict(x, verbose=0) - want).max() / np.abs(want).max()
        assert 1e-4 < error < 5e-2 and ran() > before, error
        ours.compile("sgd", "mse")
        try:
            ours.fit(x, x[:, :, :1], verbose=0)
        except tf.errors.InvalidArgumentError as said:
            assert "weights must be in float32 where gradients are computed" in str(said)
        else:
            raise AssertionError("no error")
        other.compile("sgd", "mse")
        other.fit(x, x[:, :, :1], verbose=0)
        for wrong in ({"weights": "int4"}, {"keep_x": "float32"}, {"precision": "low"}):
            try:
                blockcell.keras.enable(other, **wrong)
            except ValueError as said:
                assert next(iter(wrong)) in str(said)
            else:
                raise AssertionError("no error")
    finally:
        blockcell.keras.disable()


def precision():
    """Nodes of the layers of a model, forward and backward, have the attribute."""
    x = tf.constant(NUMBERS)
    for made in (layers.LSTM(4), layers.GRU(4), layers.LSTM(4, activation="relu")):
        model = model_of(made)

        @tf.function
        def train(x, model=model):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x, training=True))
            return tape.gradient(loss, model.trainable_variables)

        with blockcell.keras.enable(model, precision="medium"):
            graph = train.get_concrete_function(x).graph.as_graph_def()
            train(x)
        inner = [node for function in graph.library.function for node in function.node_def]
        nodes = [node for node in [*graph.node, *inner] if node.op.startswith("Block")]
        names = {node.op for node in nodes}
        assert len(names) == 2 and any("Grad" in name for name in names), names
        for node in nodes:
            assert node.attr["_blockcell_precision"].s == b"medium", node.op
            assert "_blockcell_weights" not in node.attr


def strict():
    """What the kernels cannot serve is an error; a file is none."""
    refused = layers.GRU(4, activation="softmax", name="refused")
    with on_kernels(on=False):
        with blockcell.keras.enable(strict=True):
            layers.GRU(4)(NUMBERS)
            for layer in (refused, layers.SimpleRNN(4)):
                try:
                    layer(NUMBERS)
                except blockcell.keras.NotServedError as error:
                    assert f"{layer.name}: Keras's own path runs, because" in str(error)
                    continue
                raise AssertionError("no error")
        with blockcell.keras.enable(model_of(layers.LSTM(4)), strict=True):
            refused(NUMBERS)


def every_layer_says_so_once():
    """Layers of other kinds, and a second model's layer of the same name."""
    convolution = np.zeros([2, 3, 4, 4, 1], "f")
    made = [
        (lambda: layers.SimpleRNN(4, name="same"), NUMBERS, "it is a SimpleRNN"),
        (lambda: layers.GRU(4, unroll=True, name="same"), NUMBERS, "unroll is True"),
        (lambda: layers.GRU(4, unroll=True, name="same"), NUMBERS, "unroll is True"),
        (lambda: layers.RNN(layers.SimpleRNNCell(4)), NUMBERS, "its cell is a SimpleRNNCell"),
        (
            lambda: layers.RNN([layers.LSTMCell(4), layers.LSTMCell(4)]),
            NUMBERS,
            "its cell is a StackedRNNCells",
        ),
        (lambda: layers.ConvLSTM2D(2, 3), convolution, "it is a ConvLSTM2D"),
    ]
    for make, x, words in made:
        layer = make()
        want = np.asarray(layer(x))
        with on_kernels() as calls, log() as messages:
            for _ in range(2):
                np.testing.assert_array_equal(np.asarray(layer(x)), want)
        ((level, message),) = messages
        assert not calls and level == "WARNING" and words in message, messages


def new_argument():
    """A layer with an argument that is not known runs on Keras's path, unless it is the default."""

    def with_argument(kind):
        stock = kind.__init__

        def __init__(self, *args, novelty=None, **kwargs):
            stock(self, *args, **kwargs)
            self.novelty = novelty

        return unittest.mock.patch.object(kind, "__init__", __init__)

    # The layers of Keras 2.4 have a cell of another class.
    for kind in (layers.GRU,) if KERAS2 else (layers.GRU, layers.GRUCell):
        arguments._new_arguments.cache_clear()
        with with_argument(kind), on_kernels() as calls, log() as messages:
            usual, special = layers.GRU(4), layers.GRU(4)
            usual(NUMBERS)
            assert len(calls) == 1, messages
            (special if kind is layers.GRU else special.cell).novelty = "far"
            special(NUMBERS)
            assert len(calls) == 1
        assert "its argument novelty is new, and 'far' is not its default" in messages[0][1]
        arguments._new_arguments.cache_clear()
    arguments._new_arguments.cache_clear()


def newer_keras():
    """Said once, and nothing else is different."""
    newest = unittest.mock.patch.object(environment, "NEWEST_TESTED", (2, 0))
    with newest, log() as messages, on_kernels() as calls:
        blockcell.keras.enable()
        layers.LSTM(4)(NUMBERS)
    assert len(calls) == 1
    ((level, message),) = messages
    assert level == "WARNING" and "is newer than 2.0, the newest that" in message, messages
    assert environment._minor("3.16.0.dev1") == (3, 16)


def runs_are_counted():
    model = model_of(
        layers.LSTM(4, return_sequences=True), layers.GRU(4, return_sequences=True), layers.GRU(4)
    )
    model.layers[3]._name = model.layers[2].name  # Layers are not told apart by their names.
    before = collections.Counter(blockcell.info()["runs"])
    with on_kernels():
        assert [record.runs for record in blockcell.keras.report(model)] == [0, 0, 0]
        model.predict(NUMBERS, batch_size=2, verbose=0)
        assert [record.runs for record in blockcell.keras.report(model)] == [2, 2, 2]
        model.fit(NUMBERS, NUMBERS[:, 0, :1], epochs=3, batch_size=4, verbose=0)
        assert [record.runs for record in blockcell.keras.report(model)] == [5, 5, 5]
        model.layers[1](NUMBERS)
        assert [record.runs for record in blockcell.keras.report(model)] == [6, 5, 5]
    model.predict(NUMBERS, verbose=0)
    assert [record.runs for record in blockcell.keras.report(model)] == [6, 5, 5]
    runs = collections.Counter(blockcell.info()["runs"])
    runs.subtract(before)
    # An eager call of Keras 2 may train, and without the kernels its layers become other ops.
    of_lstm, of_gru = (runs["BlockLSTMV2"], runs["BlockcellKerasLSTM"]), runs["BlockcellKerasGRU"]
    assert (*of_lstm, of_gru) == ((4, 2, 4) if KERAS2 else (3, 4, 6)), runs
    assert (runs["BlockGRU"], runs["BlockGRUGrad"]) == (6, 6), runs


def functions_of_programs():
    """They may get into files, and have gradients: no op of inference is in them."""
    model = model_of(layers.LSTM(4, return_sequences=True), layers.GRU(4))
    x = tf.constant(NUMBERS)
    with on_kernels():
        want = model.predict(NUMBERS, verbose=0)
        for function in (model, lambda x: model(x, training=False)):
            made = tf.function(function).get_concrete_function(x)
            assert not [op.type for op in made.graph.get_operations() if "Keras" in op.type]
            np.testing.assert_allclose(made(x), want, atol=1e-6)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x, training=False)
        assert np.abs(tape.gradient(y, x)).max() > 0


def without_taking_over():
    """With BLOCKCELL_OVERRIDE=0: LSTM layers run on TensorFlow's kernels of the same op."""
    model = model_of(layers.LSTM(4, return_sequences=True), layers.GRU(4))
    with on_kernels():
        model.predict(NUMBERS, verbose=0)
        of_lstm, of_gru = blockcell.keras.report(model)
    assert (of_lstm.path, of_lstm.runs) == ("tensorflow", 0) and "BlockLSTMV2" in of_lstm.reason
    assert (of_gru.path, of_gru.runs) == ("blockcell", 1)


def dense(tensor):
    """An array of float32."""
    if isinstance(tensor, tf.RaggedTensor):
        tensor = tensor.to_tensor()
    return tf.cast(tensor, tf.float32).numpy()


def both_ways(make, x, expected, limit=1e-5):
    """Outputs on Keras's path and on the kernels, which serve so many calls; None for some."""
    keras_models.seed(5)
    layer = make()
    want = layer(x)
    with on_kernels() as calls:
        got = layer(x)
        in_function = tf.function(lambda x: layer(x))(x)
    for one in (got, in_function):
        assert one.dtype == want.dtype and type(one) is type(want)
        np.testing.assert_allclose(dense(one), dense(want), atol=limit)
    assert len(calls) == expected if expected is not None else calls


def time_distributed():
    x = keras_models.random(2, 3, 5, 4)
    both_ways(lambda: layers.TimeDistributed(layers.LSTM(6)), x, None)
    # A dimension of time that is not known.
    inputs = tf.keras.Input((None, 5, 4))
    outputs = layers.TimeDistributed(layers.GRU(6))(inputs)
    model = tf.keras.Model(inputs, outputs)
    want = model.predict(x, verbose=0)
    with on_kernels() as calls:
        np.testing.assert_allclose(model.predict(x, verbose=0), want, atol=1e-5)
    assert len(calls) >= 1


def clones():
    """Clones and deep copies run on the kernels, too, and count for themselves."""
    model = model_of(layers.Bidirectional(layers.LSTM(4, return_sequences=True)), layers.GRU(4))
    want = model.predict(NUMBERS, verbose=0)
    with on_kernels() as calls:
        clone = tf.keras.models.clone_model(model)
        clone.set_weights(model.get_weights())
        np.testing.assert_allclose(clone.predict(NUMBERS, verbose=0), want, atol=1e-5)
        assert len(calls) >= 3
        assert {record.runs for record in blockcell.keras.report(clone)} == {1}
        assert {record.runs for record in blockcell.keras.report(model)} == {0}
        layer = layers.GRU(4)
        layer(NUMBERS)
        twin = copy.deepcopy(layer)
        before = len(calls)
        np.testing.assert_allclose(twin(NUMBERS), layer(NUMBERS), atol=1e-6)
        assert len(calls) == before + 2
        assert [one.runs for one in blockcell.keras.report(twin)] == [1]


def ragged():
    """Keras's own path (Keras 2), or Keras's own error."""
    rows = tf.RaggedTensor.from_tensor(tf.constant(NUMBERS), lengths=[5, 2, 3, 1])
    if KERAS2:
        both_ways(lambda: layers.LSTM(4, return_sequences=True), rows, 0)
        return
    for on in (False, True):
        with on_kernels(on):
            try:
                layers.LSTM(4)(rows)
            except (ValueError, TypeError, AttributeError):
                continue
            raise AssertionError("no error")


def bfloat16():
    of_16_bits = {"dtype": "bfloat16", "recurrent_initializer": "glorot_uniform"}
    both_ways(lambda: layers.LSTM(4, **of_16_bits), tf.cast(NUMBERS, tf.bfloat16), 0, 2e-2)
    both_ways(lambda: layers.GRU(4, dtype="mixed_bfloat16"), NUMBERS, 0, 2e-2)


def tflite():
    """Converted models have Keras's own path."""
    model = model_of(layers.LSTM(4, return_sequences=True), layers.GRU(4))
    with on_kernels():
        model.predict(NUMBERS, verbose=0)
        converter = tf.lite.TFLiteConverter.from_keras_model(model)
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS,
            tf.lite.OpsSet.SELECT_TF_OPS,
        ]
        converter._experimental_lower_tensor_list_ops = False
        content = converter.convert()
    assert b"BlockLSTM" not in content and b"BlockGRU" not in content


def onnx():
    """Exported models have Keras's own path: no op of the library, and Keras's values."""
    import os
    import tempfile

    import onnx

    model = model_of(layers.LSTM(4, return_sequences=True), layers.GRU(4))
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    with on_kernels():
        model.predict(NUMBERS, verbose=0)
        model.export(path, format="onnx", verbose=False)
    ops = {node.op_type for node in onnx.load(path).graph.node}
    assert ops and not {op for op in ops if op.startswith("Block")}, ops


def tf_keras_beside():
    """Layers of tf_keras stay as they are. They say so once, and the report does."""
    import tf_keras

    model = tf_keras.Sequential([tf_keras.layers.LSTM(4, input_shape=NUMBERS.shape[1:])])
    with on_kernels() as calls, log() as messages:
        for _ in range(2):
            model(NUMBERS)
        (record,) = blockcell.keras.report(model)
    assert not calls and (record.type, record.path) == ("LSTM", "keras")
    assert "tf_keras" in record.reason
    ((level, message),) = messages
    assert level == "WARNING" and "lstm" in message and "tf_keras" in message
    model(NUMBERS)
    assert len(messages) == 1
