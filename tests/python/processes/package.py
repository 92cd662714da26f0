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
    blockcell.info()


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
    return blockcell.info()


def info_in_a_graph():
    import tensorflow as tf

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
    assert blockcell.info() == answer
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
