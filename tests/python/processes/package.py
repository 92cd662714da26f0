"""What loading does to a fresh process, for `test_package`."""

import json
import os
import sys
import threading

import blockcell


def import_alone():
    assert "tensorflow" not in sys.modules


def load_from_many_threads():
    modules = []
    threads = [threading.Thread(target=lambda: modules.append(blockcell.load())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(modules) == 8
    assert all(module is modules[0] for module in modules)
    assert blockcell.info()["loaded"]


def info_loads_nothing():
    import tensorflow as tf

    assert not blockcell.info()["loaded"]
    with open("/proc/self/maps") as maps:
        assert "libblockcell.so" not in maps.read()
    blockcell.load()
    assert blockcell.info()["loaded"]
    return tf.__version__


def load_beside_the_stock_kernels():
    blockcell.load(take_over=False)
    assert "BLOCKCELL_OVERRIDE" not in os.environ
    answer = blockcell.info()
    blockcell.load()  # Changes nothing.
    assert blockcell.info() == answer
    return answer


def take_over_comes_first():
    blockcell.load()
    try:
        blockcell.load(take_over=False)
    except blockcell.LibraryError as error:
        return str(error)


def configure_after_loading():
    """Loading must not start TensorFlow's runtime, which cannot be configured once it runs."""
    import tensorflow as tf

    blockcell.load()
    if not tf.__version__.startswith("1."):
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(1)


def info_without_eager_mode():
    import tensorflow as tf

    tf.compat.v1.disable_eager_execution()
    blockcell.load()
    return blockcell.info()


def info_in_a_graph():
    import tensorflow as tf

    blockcell.load()
    with tf.Graph().as_default() as graph:
        answer = blockcell.info()
        assert not graph.get_operations()
    return answer


def plain_load():
    """Without the package's help; the package then finds the library loaded, and shares it."""
    import tensorflow as tf

    module = tf.load_op_library(str(blockcell.find_library()))
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        answer = json.loads(session.run(module.blockcell_info()).decode())
    blockcell.load()
    found = blockcell.info()
    assert {name: found[name] for name in answer} == answer
    return answer


def contrib_after_loading():
    import tensorflow as tf

    blockcell.load()
    tf.contrib.rnn.GRUBlockCellV2(4)
    tf.contrib.rnn.LSTMBlockCell(4)


def what_loading_prints():
    """Everything this process writes while it loads the library, to either stream."""
    import tempfile

    import tensorflow as tf

    library = str(blockcell.find_library())
    with tempfile.TemporaryFile() as file:
        saved = [os.dup(1), os.dup(2)]
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            tf.load_op_library(library)
            blockcell.load()
            os.write(2, b"end")
        finally:
            for number, copy in zip((1, 2), saved):
                os.dup2(copy, number)
        file.seek(0)
        return file.read().decode()
