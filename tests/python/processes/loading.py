"""The library's file by other paths, and copies of it, for `test_loading`.

`BLOCKCELL_LIBRARY` names the file. `BLOCKCELL_TEST_FOLDER` names a folder with a symbolic link to
it, `link.so`, a hard link, `hard_link.so`, and a copy of it in the folder `copy`.
"""

import ctypes
import json
import os

import numpy as np
import tensorflow as tf

import blockcell

FOLDER = os.environ["BLOCKCELL_TEST_FOLDER"]
LIBRARY = blockcell.find_library()
LINK, HARD_LINK = os.path.join(FOLDER, "link.so"), os.path.join(FOLDER, "hard_link.so")
COPY = os.path.join(FOLDER, "copy", LIBRARY.name)
v1 = tf.compat.v1


def works(module):
    """Whether an op of the library runs, and a stock op on the library's kernel."""
    x = np.ones([2, 3], np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        answer = json.loads(session.run(module.blockcell_info()).decode())
        both = module.blockcell_mat_mul_add_n(a=[x], b=[x], addends=[])
        zeros = tf.zeros
        gru = tf.raw_ops.GRUBlockCell(
            x=zeros([2, 3]), h_prev=zeros([2, 4]), w_ru=zeros([7, 9]), w_c=zeros([7, 4]),
            b_ru=zeros([8]), b_c=zeros([4]),
        )  # fmt: skip
        assert session.run(both).tolist() == [[2.0] * 3] * 3
        try:
            session.run(gru.h)
        except tf.errors.InvalidArgumentError as error:
            assert "2 * cell_size" in str(error), "TensorFlow's kernel refused the call"
            return "GRUBlockCell" in answer["taken_over"]
    return False


def serves(module):
    """`blockcell.load` returns this module, and all is as ever."""
    assert blockcell.load() is module
    assert blockcell.load(LINK) is module
    assert blockcell.info()["library"] == str(LIBRARY)
    assert works(module)


def load_by_a_relative_path():
    os.chdir(str(LIBRARY.parent))
    serves(tf.load_op_library("./" + LIBRARY.name))


def load_by_a_relative_path_from_elsewhere():
    """The path does not lead to the file any more."""
    os.chdir(str(LIBRARY.parent))
    module = tf.load_op_library("./" + LIBRARY.name)
    os.chdir("/")
    serves(module)


def load_by_a_symbolic_link():
    serves(tf.load_op_library(LINK))


def load_by_a_hard_link():
    serves(tf.load_op_library(HARD_LINK))


def load_by_its_name():
    """The linker finds it by `LD_LIBRARY_PATH`."""
    serves(tf.load_op_library(LIBRARY.name))


def load_from_cpp():
    """As a program does that loads it by `TF_LoadLibrary`. Nobody has made a module for it."""
    try:
        from tensorflow.python.client.pywrap_tf_session import TF_LoadLibrary
    except ImportError:
        from tensorflow.python.pywrap_tensorflow import TF_LoadLibrary
    os.chdir(str(LIBRARY.parent))
    TF_LoadLibrary("./" + LIBRARY.name)
    module = blockcell.load()
    serves(module)


def load_by_other_paths_afterwards():
    module = blockcell.load()
    os.chdir(str(LIBRARY.parent))
    for path in ("./" + LIBRARY.name, LINK, HARD_LINK):
        tf.load_op_library(path)
        assert blockcell.load(path) is module
    serves(module)


def load_without_tensorflow():
    """TensorFlow knows nothing of a file that somebody else opens."""
    ctypes.CDLL(str(LIBRARY))
    return _refusal()


def load_after_a_copy():
    """What was loaded first keeps working, and can still be asked for."""
    module = tf.load_op_library(COPY)
    assert works(module)
    first, second = _refusal(), _refusal()
    assert works(module)
    assert blockcell.load(COPY) is module
    assert works(module)
    return first, second


def load_a_copy_afterwards():
    module = blockcell.load()
    try:
        tf.load_op_library(COPY)
    except tf.errors.OpError as error:
        refusal = str(error)
    serves(module)
    return refusal


def _refusal():
    """What `blockcell.load` says."""
    try:
        blockcell.load()
    except blockcell.LibraryError as error:
        return str(error)
    raise AssertionError("it was loaded")
