"""What PyTorch's layers return: the file that `make_torch_values.py` writes."""

import pathlib

import numpy as np

from blockcell_tools.reference.cudnn import Network

_FILE = pathlib.Path(__file__).resolve().parent.parent / "cudnn" / "torch_values.npz"
_ARRAYS = np.load(str(_FILE))
CASES = sorted({name.split("/")[0] for name in _ARRAYS.files})
"""Names such as `gru-2x1-lengths`: mode, layers x directions."""
_RETURNED = ("output", "output_h", "output_c", "params_backprop")


def case(name):
    """A `cudnn.Network`, the op's inputs as of `helpers.cudnn.inputs_of`, and what it returns."""
    arrays = {
        full.split("/")[1]: _ARRAYS[full] for full in _ARRAYS.files if full.startswith(name + "/")
    }
    mode, sizes = name.split("-")[:2]
    layers, directions = map(int, sizes.split("x"))
    sizes = {"num_layers": layers, "directions": directions}
    units = outputs = arrays["input_h"].shape[2]
    if name.endswith("projected"):
        units, sizes["num_proj"] = arrays["input_c"].shape[2], outputs
    network = Network(mode, units, arrays["input"].shape[2], **sizes)
    want = {
        key: arrays.pop(key)
        for key in (*_RETURNED, "input_backprop", "input_h_backprop", "input_c_backprop")
        if key in arrays
    }
    arrays["sequence_lengths"] = arrays.pop("lengths")
    if not network.has_c:
        arrays["input_c"] = arrays["output_c_backprop"] = np.zeros((), np.float32)
    return network, arrays, want
