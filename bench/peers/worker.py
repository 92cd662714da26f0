"""The process of one side, `python -m bench.peers.worker SIDE`, as `bench.side` has it."""

import blockcell
from bench.peers.blocks import Blocks
from bench.peers.nets import Net
from bench.peers.onnx_runtime import OnnxRuntime
from bench.peers.rivals import Keras, Torch
from blockcell_tools.bench.graphs import LabelError
from blockcell_tools.bench.side import serve
from blockcell_tools.bench.worker import answer

SIDES = {
    "stock": Blocks,
    "ours": Blocks,
    "keras": Keras,
    "torch": Torch,
    "onnxruntime": OnnxRuntime,
    "onnxruntime_int8": OnnxRuntime,
}
"""What runs each side."""

if __name__ == "__main__":
    answer(serve(SIDES, Net), (LabelError, blockcell.LibraryError))
