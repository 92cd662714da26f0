"""Compares our kernels of the cuDNN RNN ops with the float64 oracle, over a grid.

TensorFlow has no kernels of these ops for CPUs, so there is no other side.
"""

from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from blockcell_tools.reference import cudnn, cudnn_inputs
from blockcell_tools.reference.inputs import Accuracy, scaled_error
from blockcell_tools.verification import Case, Result, first_line, judged

OPS: Dict[str, Tuple[int, bool]] = {
    f"CudnnRNN{kind}{cudnn_inputs.suffix(version)}": (version, bool(kind))
    for version in cudnn_inputs.VERSIONS
    for kind in ("", "Backprop")
}
"""By name the version of an op, and whether it is the gradient."""
TYPES = ("float32", "float16")
"""Those that they have kernels for."""

# time, batch, input_size, num_units
_QUICK = [(3, 5, 7, 17)]
_MORE = [(1, 1, 1, 1), (7, 3, 16, 16), (5, 19, 31, 33), (2, 20, 200, 200)]
_INT8 = [(12, 5, 40, 48), (9, 1, 45, 65), (33, 20, 64, 200)]
_STACKS = [(1, 1), (2, 2)]  # Layers and directions.


def int8_grid(ops: Sequence[str], quick: bool) -> Iterator[Case]:
    """Forward ops, at sizes where constant parameters are in int8, in float32.

    Args:
      ops: Names of ops; those of other kinds are left out.
      quick: Whether to take one size only.
    """
    for op in ops:
        version, is_gradient = OPS.get(op, (0, True))
        if not is_gradient:
            yield from _cases(op, "float32", _options(version), _INT8[:1] if quick else _INT8)


def grid(ops: Sequence[str], dtypes: Sequence[str], quick: bool) -> Iterator[Case]:
    """Every op, type, mode, direction and option, at sizes around the lanes of vectors.

    Args:
      ops: Names of ops; those of other kinds are left out.
      dtypes: Names of types; those that the ops do not have are left out.
      quick: Whether to take one size only.
    """
    for op in ops:
        if op not in OPS:
            continue
        for dtype in filter(TYPES.__contains__, dtypes):
            shapes = _QUICK + ([] if quick else _MORE)
            yield from _cases(op, dtype, _options(OPS[op][0]), shapes)


def _cases(
    op: str, dtype: str, options: List[Dict[str, Any]], shapes: Sequence[Tuple[int, ...]]
) -> Iterator[Case]:
    for attributes in options:
        for time, batch, input_size, units in shapes:
            if attributes["input_mode"] == "skip_input":
                input_size = units
            sizes = dict(time=time, batch=batch, input_size=input_size, cell_size=units)
            yield Case(op, dtype, attributes, sizes)


def _options(version: int) -> List[Dict[str, Any]]:
    found = []
    for mode in cudnn.GATES:
        for layers, directions in _STACKS:
            network = cudnn.Network(mode, 1, 1, layers, directions)
            found.append(dict(network.attributes, num_layers=layers))
        found.append(dict(cudnn.Network(mode, 1, 1, skip_input=True).attributes, num_layers=1))
    if version == 3:
        found += [dict(options, time_major=False) for options in found[::3]]
        lstm = cudnn.Network("lstm", 1, 1).attributes
        found.append(dict(lstm, num_layers=1, num_proj=2))
    return found


def check(
    case: Case, seed: int, tolerance: Optional[float], constants: Sequence[str] = ()
) -> Result:
    """Runs a case and compares it with the oracle; of version 3 each row has its own length.

    Args:
      case: What to run.
      seed: Of the inputs.
      tolerance: The scaled error to accept; by default what the kernels promise.
      constants: Names of inputs that are constants of the graph; others do not count.
    """
    from blockcell_tools import cudnn_calls

    version, is_gradient = OPS[case.op]
    time_major = case.attributes.get("time_major", True)
    network, dtype = _network(case), np.dtype(case.dtype).type
    inputs = cudnn_inputs.inputs_of(
        network,
        *(case.sizes["time"], case.sizes["batch"], dtype),
        lengths="random" if version == 3 else None,
        seed=seed,
        time_major=time_major,
    )
    order = {"time_major": time_major} if version == 3 else {}
    names = cudnn_inputs.BACKPROP if is_gradient else cudnn_inputs.FORWARD
    limit = cudnn_inputs.LIMIT[dtype] if tolerance is None else tolerance
    try:
        constants = [name for name in constants if name in inputs]
        got = cudnn_calls.run(
            network, inputs, version, is_training=is_gradient, constants=constants, **order
        )
        want = cudnn_inputs.expected(network, inputs, time_major)
        found = [
            Accuracy(name, scaled_error(got[name], want[name]), limit)
            for name in names
            if name in want
        ]
    except Exception as error:  # Of any kind: a kernel that fails is a finding.
        return Result(case, None, None, None, None, first_line(error))
    return judged(case, found, stock_error=None)


def _network(case: Case) -> cudnn.Network:
    attributes, sizes = case.attributes, case.sizes
    return cudnn.Network(
        attributes["rnn_mode"],
        sizes["cell_size"],
        sizes["input_size"],
        num_layers=attributes["num_layers"],
        directions=2 if attributes["direction"] == "bidirectional" else 1,
        skip_input=attributes["input_mode"] == "skip_input",
        num_proj=attributes.get("num_proj", 0),
    )
