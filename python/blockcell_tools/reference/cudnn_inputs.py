"""Random calls of the cuDNN RNN ops, and what they have to return."""

from typing import Any, Dict, Optional, Sequence

import numpy as np

from blockcell_tools.reference import cudnn

VERSIONS = (1, 2, 3)
"""Of the ops."""
FORWARD = ("output", "output_h", "output_c")
"""Outputs of the forward ops that an oracle knows."""
BACKPROP = tuple(name + "_backprop" for name in ("input", "input_h", "input_c", "params"))
"""Outputs of their Backprop ops."""
LIMIT: Dict[Any, float] = {np.float32: 1e-5, np.float16: 1e-2}
"""Scaled errors to accept. Half is rounded at every step and between layers."""

Arrays = Dict[str, np.ndarray]


def suffix(version: int) -> str:
    """What the names of a version's ops end in: nothing, `V2` or `V3`."""
    return f"V{version}" if version > 1 else ""


def inputs_of(
    network: cudnn.Network,
    time: int,
    batch: int,
    dtype: Any = np.float32,
    lengths: Any = None,
    seed: int = 0,
    time_major: bool = True,
) -> Arrays:
    """Random inputs of `CudnnRNN*`, and gradients that arrive at its outputs.

    Args:
      network: What attributes and shapes say.
      time: Steps.
      batch: Rows.
      dtype: The element type.
      lengths: sequence_lengths; None for all steps, "random" for any.
      seed: Changes the random numbers.
      time_major: As the attribute.

    Returns:
      Arrays by the names that the ops have for them.
    """
    random = np.random.RandomState([seed, time, batch, *map(int, network[1:])])

    def drawn(*shape: int) -> np.ndarray:
        if not time_major:
            shape = (shape[1], shape[0], *shape[2:])
        return random.standard_normal(shape).astype(dtype)

    states = (network.pseudo_layers, batch, network.outputs)
    c = (*states[:2], network.num_units) if network.has_c else None
    inputs = {
        "input": drawn(time, batch, network.input_size),
        "input_h": drawn(*states),
        "input_c": drawn(*c) if c else np.zeros((), dtype),
        "params": params_of(network, random).astype(dtype),
        "sequence_lengths": np.full(batch, time, np.int32),
    }
    if lengths is not None:
        drawn_lengths = random.randint(0, time + 1, batch)
        inputs["sequence_lengths"][:] = drawn_lengths if isinstance(lengths, str) else lengths
    inputs["output_backprop"] = drawn(time, batch, network.directions * network.outputs)
    inputs["output_h_backprop"] = drawn(*states)
    inputs["output_c_backprop"] = drawn(*c) if c else np.zeros((), dtype)
    return inputs


def params_of(network: cudnn.Network, random: Any) -> np.ndarray:
    """A random buffer that keeps gates off saturation."""
    weights, biases = cudnn.to_canonical(
        network, random.standard_normal(cudnn.params_size(network))
    )
    weights = [w / np.sqrt(max(1, w.shape[1] + network.outputs)) for w in weights]
    return cudnn.to_params(network, weights, [b / 2 for b in biases])


def expected(
    network: cudnn.Network,
    inputs: Arrays,
    time_major: bool = True,
    masks: Optional[Sequence[np.ndarray]] = None,
) -> Arrays:
    """What the forward op and its Backprop have to return, in float64."""
    arguments = {name: value for name, value in inputs.items() if not name.endswith("_backprop")}
    return {
        **cudnn.forward(network, **arguments, time_major=time_major, masks=masks),
        **cudnn.backward(network, **inputs, time_major=time_major, masks=masks),
    }
