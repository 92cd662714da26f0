"""Times inference of graphs and models whose loops the graph passes make layers of.

`python -m bench.inference --help`. Our side runs the loop of `tf.nn.dynamic_rnn` as TensorFlow
1.15 froze it, or a SavedModel as Keras 2 wrote it. Its rivals are `layer`, the same layers written
by hand with `BlockLSTM` or `BlockGRU` on our kernels (not those of the SavedModel); `unrewritten`,
the graph with the library and `BLOCKCELL_REWRITE=0`; and `tensorflow`, the graph without the
library. Each side is a process of its own; they take turns after their results were compared.
"""
