"""Times our sequences beside TensorFlow's, Keras's, PyTorch's and ONNX Runtime's.

The command line is `python -m bench.peers`.

Each of them in a process of its own: they bring pools of threads of their own, whose idle threads
keep processors busy for a while, and which must not be set up by anybody else. The processes take
turns, after their answers, gradients too, were compared.
"""
