"""The process of one side, `python -m bench.predict.worker SIDE`, as `bench.side` has it."""

import blockcell
from bench.predict.nets import Net
from bench.predict.sides import Keras, Ours, PathError
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer

SIDES = {"ours": Ours, "keras": Keras}
"""What runs each side."""

if __name__ == "__main__":
    answer(serve(SIDES, Net), (PathError, blockcell.LibraryError))
