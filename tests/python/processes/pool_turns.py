"""Products that run beside long sequences, for `test_threads`: how long they wait for the pool."""

import threading
import time

import numpy as np
import tensorflow as tf

import blockcell
from blockcell_tools.reference.inputs import inputs_of
from helpers import kernels

THREADS = 2
# As many sequences as the pool has threads, each of hundreds of steps worth a second thread. Where
# there are four processors or more, each has one.
SEQUENCES = THREADS
BATCH, SIZE, STEPS = 32, 256, 600
PRODUCT = 384  # Rows of a product of TensorFlow's that takes all threads.


def prepare():
    blockcell.load()


def waits():
    """Runs the sequences, and products one after the other until these have ended.

    Returns:
      How many products ran while all sequences did, the seconds of the longest one, and those of
      the sequences.
    """
    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=THREADS, inter_op_parallelism_threads=SEQUENCES + 1
    )
    with tf.Graph().as_default() as graph, kernels.labelled():
        inputs = inputs_of("BlockLSTM", BATCH, SIZE, SIZE, STEPS)
        fed = {n: tf.compat.v1.placeholder(value.dtype) for n, value in inputs.items()}
        sequence = kernels.call("BlockLSTM", fed)["h"]
        factor = tf.compat.v1.placeholder(tf.float32, (PRODUCT, PRODUCT))
        product = tf.matmul(factor, factor).op
    with tf.compat.v1.Session(graph=graph, config=config) as session:
        feeds = {fed[name]: value for name, value in inputs.items()}
        factors = {factor: np.ones((PRODUCT, PRODUCT), np.float32)}
        session.run(sequence.op, feeds)
        session.run(product, factors)
        seconds, ends = [], []

        def run_sequence():
            session.run(sequence.op, feeds)
            ends.append(time.perf_counter())

        start = time.perf_counter()
        others = [threading.Thread(target=run_sequence) for _ in range(SEQUENCES)]
        for other in others:
            other.start()
        while not ends:
            before = time.perf_counter()
            session.run(product, factors)
            seconds.append(time.perf_counter() - before)
        for other in others:
            other.join()
    return {"products": len(seconds), "longest": max(seconds), "sequences": max(ends) - start}
