"""A second copy of the library in one process, for `test_two_copies`."""

import json
import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

import blockcell


def _cell():
    """The state after a step in a session, by the kernel that has our label."""
    zeros = [np.zeros(shape, "f") for shape in ([2, 3], [2, 4], [7, 8], [7, 4], [8], [4])]
    with tf.Graph().as_default() as graph, tf.compat.v1.Session() as session:
        with graph._kernel_label_map({"GRUBlockCell": "blockcell"}):
            x, h_prev, w_ru, w_c, b_ru, b_c = zeros
            outputs = tf.raw_ops.GRUBlockCell(
                x=x, h_prev=h_prev + 1, w_ru=w_ru, w_c=w_c, b_ru=b_ru, b_c=b_c
            )
        return session.run(outputs)[3].tolist()


def _info(module):
    """What the library says about itself, without its counts of runs."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        said = json.loads(session.run(module.blockcell_info()))
    return {name: value for name, value in said.items() if name not in ("runs", "labels")}


def load_a_second_copy():
    """Returns what loading the copy says, and whether it changed anything."""
    library = str(blockcell.find_library())
    first = tf.load_op_library(library)
    before = _cell(), _info(first)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "libblockcell.so")
        shutil.copy(library, copy)
        try:
            tf.load_op_library(copy)
            said = None
        except tf.errors.FailedPreconditionError as error:
            said = error.message
    assert (_cell(), _info(first)) == before
    return said
