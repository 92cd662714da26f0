"""Times inference of Keras models before and after `blockcell.keras.enable()`.

`python -m bench.predict --help`. The sides are processes that take turns: Keras alone, and Keras
after the one line. Their outputs are compared first.
"""
