"""The process of one side, `python -m bench.inference.worker SIDE`, as `bench.side` has it."""

import blockcell
from bench.inference.nets import Net
from bench.inference.sides import Layer, LoopError, Ours, TensorFlow, Unrewritten
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer

SIDES = {"ours": Ours, "layer": Layer, "unrewritten": Unrewritten, "tensorflow": TensorFlow}
"""What runs each side."""

if __name__ == "__main__":
    answer(serve(SIDES, Net), (LoopError, blockcell.LibraryError))
