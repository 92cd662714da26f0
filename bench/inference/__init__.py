"""Times inference of frozen graphs of TensorFlow 1.15, whose loops the graph passes make layers of.

`python -m bench.inference --help`. Our side runs the loop of `tf.nn.dynamic_rnn` as it was frozen.
Its rivals are `layer`, the same layers written by hand with `BlockLSTM` or `BlockGRU` on our
kernels; `unrewritten`, the loop with the library and `BLOCKCELL_REWRITE=0`; and `tensorflow`, the
loop without the library. Each side is a process of its own; they take turns after their results
were compared.
"""
