"""Times published architectures, at sizes of their own, with and without the library.

`python -m bench.zoo.write` makes the graphs in TensorFlow 1.15, of the models that
`tests/python/graph_pass/models` has. `python -m bench.zoo` times them in any TensorFlow, in
processes that take turns after their results, gradients too, were compared. `python -m
bench.zoo.page` writes the table of `docs/graphs.md`.
"""
