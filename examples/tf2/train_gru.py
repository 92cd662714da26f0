"""Trains a GRU on blockcell's kernels to remember the first number of a sequence."""

import tensorflow as tf

import blockcell

blockcell.load()  # tf.raw_ops runs on the library's kernels, with gradients

BATCH, TIME, UNITS, STEPS = 64, 12, 32, 200
tf.random.set_seed(1)
w_ru = tf.Variable(tf.random.normal([1 + UNITS, 2 * UNITS], stddev=0.3), name="w_ru")
w_c = tf.Variable(tf.random.normal([1 + UNITS, UNITS], stddev=0.3), name="w_c")
b_ru = tf.Variable(tf.ones([2 * UNITS]), name="b_ru")
b_c = tf.Variable(tf.zeros([UNITS]), name="b_c")
w_out = tf.Variable(tf.random.normal([UNITS, 1], stddev=0.3), name="w_out")
variables = [w_ru, w_c, b_ru, b_c, w_out]
optimizer = tf.keras.optimizers.Adam(0.01)


@tf.function
def train_step(numbers):
    """Updates the variables, and returns the loss before."""
    with tf.GradientTape() as tape:
        h = tf.zeros([BATCH, UNITS])
        for x in tf.unstack(numbers):
            cell = tf.raw_ops.GRUBlockCell(x=x, h_prev=h, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c)
            h = cell.h
        loss = tf.reduce_mean(tf.square(h @ w_out - numbers[0]))
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for step in range(STEPS + 1):
    loss = train_step(tf.random.normal([TIME, BATCH, 1]))
    if step % 50 == 0:
        print(f"step {step}: loss {loss:.4f}")
