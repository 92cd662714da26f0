"""Models trained on Keras's own path and on the kernels: losses, predictions and who served."""

import numpy as np
import tensorflow as tf

import blockcell
import keras_models
from keras_models import KERAS2, on_kernels

layers = tf.keras.layers
WORDS = np.random.RandomState(0).randint(1, 20, (24, 6)) * tf.sequence_mask(
    np.arange(24) % 6 + 1, 6, dtype=tf.int64
)
NUMBERS = keras_models.random(24, 6, 5)
LABELS = np.random.RandomState(1).randint(0, 3, 24)


def prepare():
    blockcell.load()


def compiled(model, **arguments):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    # Adam's steps hardly depend on how large a gradient is.
    model.compile(tf.keras.optimizers.SGD(0.5), loss, **arguments)
    return model


def tagger(**arguments):
    dropout = 0.0 if KERAS2 else 0.2  # Keras 2 draws by the number of nodes in the graph.
    return compiled(
        tf.keras.Sequential(
            [
                layers.Embedding(20, 5, mask_zero=True),
                layers.Bidirectional(layers.LSTM(4, return_sequences=True, dropout=dropout)),
                layers.GRU(4),
                layers.Dense(3),
            ]
        ),
        **arguments,
    )


def translator():
    """An encoder whose states start a decoder, with attention between them."""
    source, target = tf.keras.Input((6, 5)), tf.keras.Input((None, 5))
    encoded, *states = layers.LSTM(4, return_sequences=True, return_state=True)(source)
    decoded = layers.LSTM(4, return_sequences=True)(target, initial_state=states)
    attended = layers.MultiHeadAttention(2, 3)(decoded, encoded)
    last = layers.GRU(4, go_backwards=True, reset_after=False)(attended)
    return compiled(tf.keras.Model([source, target], layers.Dense(3)(last)))


class Trainer(tf.keras.Model):
    """A model with a training step of its own."""

    def __init__(self):
        super().__init__()
        self.recurrent, self.dense = layers.GRU(4, use_bias=False), layers.Dense(3)

    def call(self, inputs):
        return self.dense(self.recurrent(inputs))

    def train_step(self, data):
        inputs, labels = data
        with tf.GradientTape() as tape:
            logits = self(inputs, training=True)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(tf.cast(labels, tf.int32), logits)
            )
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}


def classifier(kind="LSTM", shape=(6, 5), batch_size=None, **arguments):
    first = tf.keras.Input(shape, batch_size=batch_size)
    last = getattr(layers, kind)(4, **arguments)(first)
    return compiled(tf.keras.Model(first, layers.Dense(3, dtype="float32")(last)))


def compare(make, inputs, labels=LABELS, served=1, limit=1e-5, **arguments):
    """Trains two models that are made alike.

    Args:
      make: Makes the model.
      inputs: As of `fit`.
      labels: As of `fit`.
      served: The number of layers that the kernels serve.
      limit: The relative difference to accept.
      **arguments: Of `fit`.
    """
    histories, predictions = [], []
    for side in ("stock", "ours"):
        keras_models.seed(8)
        model = make()
        arguments = dict({"epochs": 3, "verbose": 0, "shuffle": False}, **arguments)
        with on_kernels(side == "ours") as calls:
            histories.append(model.fit(inputs, labels, **arguments).history["loss"])
            if not isinstance(inputs, tf.data.Dataset):
                size = arguments.get("batch_size", 32)
                histories[-1].append(model.evaluate(inputs, labels, batch_size=size, verbose=0))
                predictions.append(model.predict(inputs, batch_size=size, verbose=0))
        assert len(set(calls)) == (served if side == "ours" else 0), calls
    np.testing.assert_allclose(histories[1], histories[0], rtol=limit)
    assert histories[0][-1] < histories[0][0], "training has no effect"
    if predictions:
        np.testing.assert_allclose(predictions[1], predictions[0], atol=10 * limit)


def embedding_bidirectional_masked():
    compare(tagger, np.asarray(WORDS), served=3, batch_size=8)


def encoder_decoder_with_attention():
    compare(translator, [NUMBERS, NUMBERS[:, ::-1]], served=3)


def own_train_step():
    def make():
        model = Trainer()
        model.compile(tf.keras.optimizers.SGD(0.5))
        return model

    keras_models.seed(8)
    losses = []
    for on in (False, True):
        keras_models.seed(8)
        model = make()
        with on_kernels(on) as calls:
            losses.append(model.fit(NUMBERS, LABELS, epochs=3, verbose=0).history["loss"])
        assert bool(calls) == on
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)


def dataset_of_unknown_sizes():
    def rows():
        for k in range(23):  # The last batch is smaller.
            yield NUMBERS[k, : k % 5 + 2], LABELS[k]

    data = tf.data.Dataset.from_generator(
        rows, (tf.float32, tf.int64), (tf.TensorShape([None, 5]), tf.TensorShape([]))
    )
    data = data.padded_batch(8, ([None, 5], []))

    def make():
        first = tf.keras.Input((None, 5))
        last = layers.LSTM(4)(layers.Masking()(first))
        return compiled(tf.keras.Model(first, layers.Dense(3)(last)))

    compare(make, data, None)


def stateful():
    compare(lambda: classifier("GRU", batch_size=8, stateful=True), NUMBERS, served=1, batch_size=8)


def eagerly():
    compare(lambda: compiled(classifier("GRU"), run_eagerly=True), NUMBERS, epochs=2)


def several_steps_per_execution():
    compare(lambda: compiled(classifier(), steps_per_execution=2), NUMBERS, batch_size=6)


def half():
    policies = tf.keras.mixed_precision
    policies.set_global_policy("mixed_float16")
    try:
        compare(lambda: classifier("LSTM"), NUMBERS, limit=2e-3)
        compare(lambda: classifier("GRU"), NUMBERS, limit=2e-3)
    finally:
        policies.set_global_policy("float32")


def mirrored():
    def make():
        with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
            return classifier()

    compare(make, NUMBERS)


def compiled_by_xla():
    """On the kernels, training would end with an error: XLA does not know the ops."""
    compare(lambda: compiled(classifier(), jit_compile=True), NUMBERS, served=0)


def jit_compile_auto():
    with on_kernels() as calls:
        model = compiled(classifier(), jit_compile="auto")
        model.fit(NUMBERS, LABELS, verbose=0)
    assert not model.jit_compile and calls
