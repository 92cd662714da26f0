"""What `BLOCKCELL_CUDNN` does to a process, for `test_cudnn_switch`."""

import numpy as np
import tensorflow as tf

import blockcell


def _run():
    arguments = dict(
        input=np.zeros([2, 3, 4], "f"),
        input_h=np.zeros([1, 3, 5], "f"),
        input_c=np.zeros([1, 3, 5], "f"),
        params=np.zeros([220], "f"),
    )
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        return session.run(tf.raw_ops.CudnnRNN(**arguments).output)


def switch():
    blockcell.load()
    return blockcell.info()["cudnn"]


def on():
    blockcell.load()
    assert not _run().any()
    answer = blockcell.info()
    assert "CudnnRNN" in answer["ops"]
    return answer["cudnn"]


def off():
    """As stock TensorFlow answers, before the library is loaded and after."""
    complaints = []
    for load in (lambda: None, blockcell.load):
        load()
        try:
            _run()
        except tf.errors.OpError as error:
            known = "No OpKernel was registered to support Op 'CudnnRNN'" in error.message
            complaints.append((type(error).__name__, known))
    assert len(complaints) == 2 and complaints[0] == complaints[1], complaints
    answer = blockcell.info()
    assert not any(op.startswith("Cudnn") for op in answer["ops"])
    assert "GRUBlockCell" in answer["ops"]
    return answer["cudnn"], complaints[1]
