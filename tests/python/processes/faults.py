"""Calls that end before their time, and processes that fork, for `test_faults`."""

import os
import signal
import threading
import time
import traceback

import numpy as np
import tensorflow as tf

import blockcell
from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM, OPS
from blockcell_tools.reference.inputs import inputs_of
from helpers import checks
from robustness import load

v1 = tf.compat.v1
LONG = {BLOCK_LSTM: {"use_peephole": False}, BLOCK_GRU: {"reset_after": True}}
"""Sequences that take long, and their attributes."""
SECONDS = 60


def prepare():
    blockcell.load()


class _Long:
    """A sequence of many steps in a session, and the same of few steps."""

    def __init__(self, op):
        self.on = LONG[op]
        with tf.Graph().as_default() as graph:
            inputs = inputs_of(op, 4, 32, 256, 3, **self.on)
            self.node = load.calling.node(op, inputs, self.on)
        self.few = self.node.feeds
        inputs = inputs_of(op, 4, 32, 256, 1, **self.on)
        repeats, length = 20000, OPS[op].length
        inputs["x"] = np.repeat(inputs["x"], repeats, axis=0)
        inputs[length] = np.full_like(inputs[length], repeats)
        self.many = dict(zip(self.node.feeds, inputs.values()))
        self.session = v1.Session(graph=graph)

    def run(self, feeds, session=None, **options):
        return (session or self.session).run(self.node.fetches[-1], feeds, **options)


def steps_that_take_too_long():
    """A step that is cancelled by its deadline is an error, and the next ones are as ever."""
    for op in LONG:
        long = _Long(op)
        want = long.run(long.few)
        for _ in range(3):
            try:
                long.run(long.many, options=v1.RunOptions(timeout_in_ms=10))
            except tf.errors.DeadlineExceededError:
                pass
            else:
                raise AssertionError("the machine is too fast for this test")
            np.testing.assert_array_equal(long.run(long.few), want)


def sessions_that_are_closed():
    """Steps end with an error or a result when their session is closed; another one goes on."""
    for op in LONG:
        long = _Long(op)
        want = long.run(long.few)
        other = v1.Session(graph=long.session.graph)
        ends = []

        def run(long=long, ends=ends):
            try:
                ends.append(long.run(long.many).shape)
            except (tf.errors.CancelledError, RuntimeError) as error:
                ends.append(type(error).__name__)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        long.session.close()
        np.testing.assert_array_equal(long.run(long.few, other), want)
        for thread in threads:
            thread.join(SECONDS)
        assert len(ends) == 3, "a step hangs"


def steps_that_fail_midway():
    """Training goes on as if a step that failed had not been: no variable is half changed."""
    inputs = inputs_of(BLOCK_LSTM, 3, 2, 4, 5, use_peephole=False)
    with tf.Graph().as_default() as graph:
        length = v1.placeholder_with_default(np.int64(5), [])
        weights = v1.get_variable("w", initializer=inputs["w"], use_resource=True)
        tensors = dict(inputs, w=weights, seq_len_max=length)
        h = tf.raw_ops.BlockLSTM(**tensors, use_peephole=False).h
        # The second one fails, when the first one has run.
        tensors.update(h_prev=h[-1], cs_prev=h[-1], seq_len_max=2 * length - 5)
        loss = tf.reduce_sum(tf.raw_ops.BlockLSTM(**tensors, use_peephole=False).h ** 2)
        train = v1.train.AdamOptimizer(0.1).minimize(loss)
        start = v1.global_variables_initializer()
    found = []
    for fails in (False, True):
        with v1.Session(graph=graph) as session:
            session.run(start)
            for step in range(4):
                session.run(train)
                if fails and step % 2:
                    _assert_fails(session, train, {length: 6})
                    _assert_fails(session, train, {length: 1})
            found.append(session.run(weights))
    np.testing.assert_array_equal(*found)
    assert (found[0] != inputs["w"]).all()


def _assert_fails(session, train, feeds):
    try:
        session.run(train, feeds)
    except tf.errors.InvalidArgumentError as error:
        assert "seq_len_max must be between 0 and time = 5" in error.message
    else:
        raise AssertionError("the step was made")


def _in_children(count, function):
    """Runs a function in forked processes at the same time."""
    children = []
    for _ in range(count):
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            try:
                function()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children]


def _some_ops():
    """Checks that every op of the table gives right results."""
    table, _ = load.calls()
    for op, inputs, on in table[1 :: len(load.SIZES)]:
        answer = load.calling.answer("session", op, inputs, on)
        assert not answer.error, answer.message
        checks.assert_accurate(op, inputs, dict(zip(OPS[op].outputs, answer.values)), **on)


def fork_after_loading():
    """Children that fork from a process with the library, and the process itself, run ops."""
    assert _in_children(2, _some_ops) == [0, 0]
    _some_ops()
