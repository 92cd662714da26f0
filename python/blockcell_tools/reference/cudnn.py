"""The cuDNN RNN ops in float64 NumPy: their parameter buffer, forward and backward.

The equations are those of the cuDNN API reference (`cudnnRNNMode_t`). W and R are the input and the
recurrent matrix of a gate, bW and bR its two biases, S the logistic function, h and c the state
before the step:

    rnn_relu, rnn_tanh   h' = f(W x + bW + R h + bR), f is max(0, .) or tanh
    lstm                 i, f, o = S(W x + bW + R h + bR) of each gate;  g = tanh(same of gate c)
                         c' = f*c + i*g ;  h' = o*tanh(c')
    gru                  r, i = S(W x + bW + R h + bR) of each gate
                         n = tanh(W x + bW + r*(R h + bR)) ;  h' = (1-i)*n + i*h

With a projection of the LSTM, h' = P (o*tanh(c')). A layer has one pseudo-layer for each direction.
Pseudo-layers are numbered layer by layer, the forward direction first. From the second layer on, x
is the output of both directions of the layer below. With `skip_input`, the first layer has no W:
each of its gates gets x itself for W x.

Sizes: time (T), batch (B), input_size (D), num_units (C), num_layers (L), directions (N), and
columns of the output of a direction (H): C, or num_proj with a projection.
"""

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from blockcell_tools.reference.oracle import logistic

Array = Any
Arrays = Dict[str, Array]

GATES = {"rnn_relu": ("h",), "rnn_tanh": ("h",), "lstm": tuple("ifco"), "gru": tuple("rin")}
"""Gates of each `rnn_mode`, in the order of the buffer."""


class Network(NamedTuple):
    """What attributes and shapes say of a cuDNN RNN."""

    rnn_mode: str
    num_units: int
    input_size: int
    num_layers: int = 1
    directions: int = 1
    skip_input: bool = False
    num_proj: int = 0

    @property
    def gates(self) -> int:
        """Gates of the cell."""
        return len(GATES[self.rnn_mode])

    @property
    def pseudo_layers(self) -> int:
        """Layers times directions."""
        return self.num_layers * self.directions

    @property
    def has_c(self) -> bool:
        """Whether there is a second state."""
        return self.rnn_mode == "lstm"

    @property
    def outputs(self) -> int:
        """Columns of the output of a direction, and of the state h."""
        return self.num_proj or self.num_units

    def width(self, pseudo_layer: int) -> int:
        """Columns of W of a pseudo-layer; 0 if the input skips it."""
        if pseudo_layer >= self.directions:
            return self.directions * self.outputs
        return 0 if self.skip_input else self.input_size

    @property
    def attributes(self) -> Dict[str, str]:
        """The attributes that all ops share."""
        return {
            "rnn_mode": self.rnn_mode,
            "input_mode": "skip_input" if self.skip_input else "linear_input",
            "direction": "bidirectional" if self.directions == 2 else "unidirectional",
        }


# The parameter buffer.


class Place(NamedTuple):
    """Where one gate's part of a matrix or bias is in the buffer."""

    name: str
    """`W`, `R`, `P`, `bW` or `bR`."""
    pseudo_layer: int
    gate: str
    """Nothing for `P`."""
    offset: int
    """Index of the first element."""
    shape: Tuple[int, ...]
    """[C, columns], [H, C] or [C]."""


def layout(network: Network) -> List[Place]:
    """The parts of the buffer in their order.

    Weights come first, pseudo-layer by pseudo-layer: W of all gates, then R of all gates, each
    row-major [C, columns], then P if there is one. Biases follow in the same order.
    """
    gates, units = GATES[network.rnn_mode], network.num_units
    parts: List[Tuple[str, int, str, Tuple[int, ...]]] = []
    for at in range(network.pseudo_layers):
        parts += [("W", at, gate, (units, network.width(at))) for gate in gates]
        parts += [("R", at, gate, (units, network.outputs)) for gate in gates]
        if network.num_proj:
            parts.append(("P", at, "", (network.num_proj, units)))
    for at in range(network.pseudo_layers):
        parts += [(name, at, gate, (units,)) for name in ("bW", "bR") for gate in gates]
    places: List[Place] = []
    end = 0
    for name, at, gate, shape in parts:
        places.append(Place(name, at, gate, end, shape))
        end += int(np.prod(shape))
    return places


def params_size(network: Network) -> int:
    """Elements of the buffer."""
    last = layout(network)[-1]
    return last.offset + int(np.prod(last.shape))


def to_canonical(network: Network, params: Array) -> Tuple[List[Array], List[Array]]:
    """`CudnnRNNParamsToCanonical`: matrices and biases, in the buffer's order."""
    params = np.asarray(params)
    if params.shape != (params_size(network),):
        raise ValueError(f"params has the shape {params.shape}, expected {params_size(network)}")
    parts: Tuple[List[Array], List[Array]] = ([], [])
    for place in layout(network):
        part = params[place.offset : place.offset + int(np.prod(place.shape))]
        parts[place.name.startswith("b")].append(part.reshape(place.shape))
    return parts


def to_params(network: Network, weights: Sequence[Array], biases: Sequence[Array]) -> Array:
    """`CudnnRNNCanonicalToParams`: the buffer."""
    parts = [np.asarray(part) for part in (*weights, *biases)]
    want = [place.shape for place in layout(network)]
    if [part.shape for part in parts] != want:
        raise ValueError(f"the shapes are {[part.shape for part in parts]}, expected {want}")
    return np.concatenate([part.ravel() for part in parts])


class _Layer(NamedTuple):
    """A pseudo-layer's parameters: all gates of W [gates*C, columns] and so on."""

    w: Optional[Array]
    r: Array
    p: Optional[Array]
    bw: Array
    br: Array


def _layers(network: Network, params: Array) -> List[_Layer]:
    weights, biases = to_canonical(network, np.asarray(params, np.float64))
    gates, layers = network.gates, []
    for at in range(network.pseudo_layers):
        w, r = (np.concatenate([weights.pop(0) for _ in range(gates)]) for _ in range(2))
        p = weights.pop(0) if network.num_proj else None
        bw, br = (np.concatenate([biases.pop(0) for _ in range(gates)]) for _ in range(2))
        skips = network.skip_input and at < network.directions
        layers.append(_Layer(None if skips else w, r, p, bw, br))
    return layers


# One step: of a = W x + bW and b = R h + bR [B, gates*C].


def _rnn(f: Callable[[Array], Array], slope: Callable[[Array], Array]) -> Tuple[Any, Any]:
    def step(a: Array, b: Array, h: Array, c: Array) -> Tuple[Array, Array, Any]:
        h = f(a + b)
        return h, c, h

    def grad(saved: Any, dh: Array, dc: Array) -> Tuple[Array, Array, Array, Array]:
        d = dh * slope(saved)
        return d, d, np.zeros_like(dh), dc

    return step, grad


def _lstm_step(a: Array, b: Array, h: Array, c: Array) -> Tuple[Array, Array, Any]:
    z = np.split(a + b, 4, axis=1)
    i, f, g, o = logistic(z[0]), logistic(z[1]), np.tanh(z[2]), logistic(z[3])
    new_c = f * c + i * g
    return o * np.tanh(new_c), new_c, (i, f, g, o, c, np.tanh(new_c))


def _lstm_grad(saved: Any, dh: Array, dc: Array) -> Tuple[Array, Array, Array, Array]:
    i, f, g, o, c, tanh_c = saved
    dc = dc + dh * o * (1 - tanh_c**2)
    di, df, dg, do = dc * g * i * (1 - i), dc * c * f * (1 - f), dc * i * (1 - g**2), dh * tanh_c
    d = np.concatenate([di, df, dg, do * o * (1 - o)], axis=1)
    return d, d, np.zeros_like(dh), dc * f


def _gru_step(a: Array, b: Array, h: Array, c: Array) -> Tuple[Array, Array, Any]:
    (a_r, a_i, a_n), (b_r, b_i, b_n) = np.split(a, 3, axis=1), np.split(b, 3, axis=1)
    r, i = logistic(a_r + b_r), logistic(a_i + b_i)
    n = np.tanh(a_n + r * b_n)
    return (1 - i) * n + i * h, c, (r, i, n, b_n, h)


def _gru_grad(saved: Any, dh: Array, dc: Array) -> Tuple[Array, Array, Array, Array]:
    r, i, n, b_n, h = saved
    dn = dh * (1 - i) * (1 - n**2)
    di = dh * (h - n) * i * (1 - i)
    dr = dn * b_n * r * (1 - r)
    da, db = np.concatenate([dr, di, dn], axis=1), np.concatenate([dr, di, dn * r], axis=1)
    return da, db, dh * i, dc


_CELLS = {
    "rnn_relu": _rnn(lambda z: np.maximum(z, 0), lambda h: (h > 0).astype(np.float64)),
    "rnn_tanh": _rnn(np.tanh, lambda h: 1 - h**2),
    "lstm": (_lstm_step, _lstm_grad),
    "gru": (_gru_step, _gru_grad),
}
"""A step, and its chain rule: from dh, dc to the gradients of a, b, and to h and c directly."""


# One pseudo-layer. Rows end at their lengths; backwards in time, they begin there.


def _order(time: int, backwards: bool) -> Sequence[int]:
    return range(time - 1, -1, -1) if backwards else range(time)


def _run(
    network: Network, layer: _Layer, x: Array, h: Array, c: Array, lengths: Array, backwards: bool
) -> Tuple[Array, Array, Array, List[Any]]:
    """Output [T, B, H], last h [B, H] and c [B, C], and what the chain rule needs of each step."""
    step, _ = _CELLS[network.rnn_mode]
    h, c = h.copy(), c.copy()
    output, tape = np.zeros((len(x), *h.shape)), []
    for t in _order(len(x), backwards):
        rows = lengths > t
        of_x = np.tile(x[t][rows], network.gates) if layer.w is None else x[t][rows] @ layer.w.T
        before = h[rows]
        after, c[rows], saved = step(
            of_x + layer.bw, before @ layer.r.T + layer.br, before, c[rows]
        )
        h[rows] = output[t][rows] = after if layer.p is None else after @ layer.p.T
        tape.append((t, rows, before, after, saved))
    return output, h, c, tape


def _run_grad(
    network: Network,
    layer: _Layer,
    x: Array,
    tape: List[Any],
    d_output: Array,
    dh: Array,
    dc: Array,
) -> Tuple[Array, Array, Array, _Layer]:
    """Gradients of x, of the first h and c, and of the parameters."""
    _, grad = _CELLS[network.rnn_mode]
    dx, dh, dc = np.zeros_like(x), dh.copy(), dc.copy()
    d_w, d_p = (None if part is None else np.zeros_like(part) for part in (layer.w, layer.p))
    r, bw, br = (np.zeros_like(part) for part in (layer.r, layer.bw, layer.br))
    sums = _Layer(d_w, r, d_p, bw, br)
    for t, rows, before, after, saved in reversed(tape):
        incoming = dh[rows] + d_output[t][rows]
        if layer.p is not None:
            d_p += incoming.T @ after
            incoming = incoming @ layer.p
        da, db, directly, dc[rows] = grad(saved, incoming, dc[rows])
        dh[rows] = db @ layer.r if layer.p is not None else directly + db @ layer.r
        if layer.w is None:
            dx[t][rows] = sum(np.split(da, network.gates, axis=1))
        else:
            dx[t][rows] = da @ layer.w
            d_w += da.T @ x[t][rows]
        sums.r[...] += db.T @ before
        sums.bw[...] += da.sum(0)
        sums.br[...] += db.sum(0)
    return dx, dh, dc, sums


# The ops.


def _time_major(array: Array, is_so: bool) -> Array:
    array = np.asarray(array, np.float64)
    return array if is_so else array.swapaxes(0, 1)


def _checked_lengths(lengths: Any, time: int, batch: int) -> Array:
    if lengths is None:
        return np.full(batch, time)
    lengths = np.asarray(lengths)
    if lengths.shape != (batch,) or (lengths < 0).any() or (lengths > time).any():
        raise ValueError(f"sequence_lengths is {lengths}, expected {batch} numbers up to {time}")
    return lengths


class _Tape(NamedTuple):
    """What `backward` needs of `forward`."""

    layers: List[_Layer]
    inputs: List[Array]
    """Input of each layer, after dropout."""
    steps: List[Any]
    """Steps of each pseudo-layer."""


def _forward(
    network: Network, x: Array, h: Array, c: Array, params: Array, lengths: Array, masks: Any
) -> Tuple[Array, Array, Array, _Tape]:
    tape = _Tape(_layers(network, params), [], [])
    last_h, last_c = np.zeros_like(h), np.zeros_like(c)
    for layer in range(network.num_layers):
        if layer > 0 and masks is not None:
            x = x * masks[layer - 1]
        tape.inputs.append(x)
        outputs = []
        for direction in range(network.directions):
            at = layer * network.directions + direction
            output, last_h[at], last_c[at], steps = _run(
                network, tape.layers[at], x, h[at], c[at], lengths, direction == 1
            )
            outputs.append(output)
            tape.steps.append(steps)
        x = np.concatenate(outputs, axis=2)
    return x, last_h, last_c, tape


def forward(
    network: Network,
    input: Array,
    input_h: Array,
    input_c: Array,
    params: Array,
    sequence_lengths: Any = None,
    time_major: bool = True,
    masks: Optional[Sequence[Array]] = None,
) -> Arrays:
    """`CudnnRNN`, `V2` and `V3`.

    Args:
      network: What attributes and shapes say.
      input: [T, B, D].
      input_h: [L*N, B, H].
      input_c: [L*N, B, C] for lstm; not used for others.
      params: The buffer, as `layout` says.
      sequence_lengths: Steps of each row [B]; all of them by default. After its last step a row's
        output is 0. Its last state is the one after that step, or the first one without steps.
      time_major: If False, the first two axes of `input`, the states and all results are swapped.
      masks: What dropout multiplies the input of each layer but the first with, [T, B, N*H] each.

    Returns:
      output [T, B, N*H] and output_h [L*N, B, H]; for lstm output_c [L*N, B, C], too.
    """
    x, h = _time_major(input, time_major), _time_major(input_h, time_major)
    c = _time_major(input_c, time_major) if network.has_c else np.zeros_like(h)
    lengths = _checked_lengths(sequence_lengths, len(x), x.shape[1])
    output, last_h, last_c, _ = _forward(network, x, h, c, params, lengths, masks)
    results = {"output": output, "output_h": last_h}
    if network.has_c:
        results["output_c"] = last_c
    return {name: _time_major(value, time_major) for name, value in results.items()}


def backward(
    network: Network,
    input: Array,
    input_h: Array,
    input_c: Array,
    params: Array,
    output_backprop: Array,
    output_h_backprop: Array,
    output_c_backprop: Array = None,
    sequence_lengths: Any = None,
    time_major: bool = True,
    masks: Optional[Sequence[Array]] = None,
) -> Arrays:
    """`CudnnRNNBackprop`, `V2` and `V3`: the gradients for those of the outputs of `forward`.

    Returns:
      input_backprop, input_h_backprop, for lstm input_c_backprop, and params_backprop, in the
      shapes of the inputs.
    """
    x, h = _time_major(input, time_major), _time_major(input_h, time_major)
    c = _time_major(input_c, time_major) if network.has_c else np.zeros_like(h)
    lengths = _checked_lengths(sequence_lengths, len(x), x.shape[1])
    tape = _forward(network, x, h, c, params, lengths, masks)[-1]

    carry = _time_major(output_backprop, time_major)
    dh = _time_major(output_h_backprop, time_major).copy()
    dc = _time_major(output_c_backprop, time_major).copy() if network.has_c else np.zeros_like(h)
    weights: List[Array] = []
    biases: List[Array] = []
    for layer in reversed(range(network.num_layers)):
        below = np.zeros_like(tape.inputs[layer])
        d_outputs = np.split(carry, network.directions, axis=2)
        for direction in reversed(range(network.directions)):
            at = layer * network.directions + direction
            dx, dh[at], dc[at], sums = _run_grad(
                network,
                tape.layers[at],
                tape.inputs[layer],
                tape.steps[at],
                d_outputs[direction],
                dh[at],
                dc[at],
            )
            below += dx
            weights[:0] = [part.ravel() for part in sums[:3] if part is not None]
            biases[:0] = [sums.bw, sums.br]
        carry = below if layer == 0 or masks is None else below * masks[layer - 1]
    results = {"input_backprop": carry, "input_h_backprop": dh}
    if network.has_c:
        results["input_c_backprop"] = dc
    results = {name: _time_major(value, time_major) for name, value in results.items()}
    return dict(results, params_backprop=np.concatenate(weights + biases))
