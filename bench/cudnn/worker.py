"""The process of one side, `python -m bench.cudnn.worker SIDE`, as `bench.side` has it."""

import blockcell
from bench.cudnn.nets import Net
from bench.cudnn.sides import Cells, Ours, Torch
from blockcell_tools.bench.graphs import LabelError
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer

SIDES = {"ours": Ours, "cells": Cells, "torch": Torch}
"""What runs each side."""

if __name__ == "__main__":
    answer(serve(SIDES, Net), (LabelError, blockcell.LibraryError))
