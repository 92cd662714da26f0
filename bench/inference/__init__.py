"""Times inference of frozen graphs of TensorFlow 1.15, whose loops the graph passes make layers of.

`python -m bench.inference --help`. Our side runs the loop of `tf.nn.dynamic_rnn` as people froze
it. Its rivals are `layer`, the same layer written by hand with `BlockLSTM` or `BlockGRU` on our
kernels, and `tensorflow`, the loop without the library. Each side is a process of its own; they
take turns after their results were compared.
"""
