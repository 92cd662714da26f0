"""Several processes that train together, over loopback: the examples, and who needs the library."""

import math

import pytest
import tensorflow as tf

import blockcell
from helpers import isolated, programs

TF1 = tf.__version__.startswith("1.")
CELL, SEQUENCE = "lstm_block_cell", "lstm_block_fused_cell"
FIRST_LOSS = pytest.approx(math.log(256), abs=0.01)
"""Of a model of bytes that has not learnt yet, in nats a byte."""


def train(program, output, *arguments, code=0):
    """Runs a program of the example, and returns what it printed."""
    library = ("--library", blockcell.find_library())
    ended, printed = programs.run(
        f"examples/distributed/{program}", *library, "--output", output, *arguments
    )
    assert ended == code, printed
    return printed


@pytest.mark.skipif(TF1, reason="the example is for TensorFlow 2")
def test_mirrored_workers_train_as_one_process(tmp_path):
    printed = train("mirrored.py", tmp_path, "--steps", 5, "--units", 17)
    assert "the same training" in printed and "worker 1 of 2" in printed


@pytest.mark.skipif(TF1, reason="the example is for TensorFlow 2")
def test_a_killed_worker_is_noticed_and_training_resumes(tmp_path):
    printed = train("lost_worker.py", tmp_path, "--steps", 6, "--units", 17)
    assert "the other worker said: the worker worker 0" in printed
    assert "the same training" in printed


def test_parameter_server_trains_as_one_process(tmp_path):
    printed = train("parameter_server.py", tmp_path, "--steps", 3)
    assert "the same training" in printed and "worker 1 beside the other" in printed


@pytest.fixture(scope="module")
def remote():
    name, library = "losses_or_errors", str(blockcell.find_library())
    outcomes = isolated.run("remote", [name], {"BLOCKCELL_TEST_LIBRARY": library})
    return isolated.value(outcomes[name])


@pytest.mark.parametrize("model", [CELL, SEQUENCE])
@pytest.mark.parametrize("who_has_it", ["session", "ops", "both", "one process"])
def test_each_process_runs_its_ops_with_or_without_the_library(remote, who_has_it, model):
    """A session leaves alone what other processes run: these may not have the library."""
    want, got = remote["nobody"][model], remote[who_has_it][model]
    assert want[0] == FIRST_LOSS and want[-1] < want[0]
    assert got == pytest.approx(want, rel=1e-5)


def test_whose_kernels_run(remote):
    # In TensorFlow 1.15 the session chooses the kernels, in TensorFlow 2 the process of the op.
    assert (remote["refusal"] == remote["our_refusal"]) == (not TF1)
