"""Random graphs, run with and without the graph rewrites.

A program is a small graph as plain data: `generator` makes one from a seed, `builder` puts it into
a TensorFlow graph, `runner` runs it in two processes (one rewrites graphs, one does not) and
compares the outcomes, `shrinker` makes a failing one small. `python -m fuzzing` runs many.
"""
