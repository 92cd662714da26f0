"""Random but reproducible inputs for the ops, and how to measure an error."""

import numpy as np

import oracle

GRU, LSTM = "GRUBlockCellGrad", "LSTMBlockCellGrad"
GRU_OUTPUTS = ("d_x", "d_h_prev", "d_c_bar", "d_r_bar_u_bar")
LSTM_OUTPUTS = ("cs_prev_grad", "dicfo", "wci_grad", "wcf_grad", "wco_grad")

# Every input's shape in symbols, in the order of the op.
SHAPES = {
    GRU: {
        "x": ("batch", "input_size"),
        "h_prev": ("batch", "cell_size"),
        "w_ru": ("input_size + cell_size", "2 * cell_size"),
        "w_c": ("input_size + cell_size", "cell_size"),
        "b_ru": ("2 * cell_size",),
        "b_c": ("cell_size",),
        "r": ("batch", "cell_size"),
        "u": ("batch", "cell_size"),
        "c": ("batch", "cell_size"),
        "d_h": ("batch", "cell_size"),
    },
    LSTM: {
        "x": ("batch", "input_size"),
        "cs_prev": ("batch", "cell_size"),
        "h_prev": ("batch", "cell_size"),
        "w": ("input_size + cell_size", "4 * cell_size"),
        "wci": ("cell_size",),
        "wcf": ("cell_size",),
        "wco": ("cell_size",),
        "b": ("4 * cell_size",),
        "i": ("batch", "cell_size"),
        "cs": ("batch", "cell_size"),
        "f": ("batch", "cell_size"),
        "o": ("batch", "cell_size"),
        "ci": ("batch", "cell_size"),
        "co": ("batch", "cell_size"),
        "cs_grad": ("batch", "cell_size"),
        "h_grad": ("batch", "cell_size"),
    },
}
FORWARD_INPUTS = {GRU: 6, LSTM: 8}  # How many of these are inputs of the cell itself.
PEEPHOLES = ("wci", "wcf", "wco")

# Inputs whose values the op does not use.
UNREAD = {GRU: ("x", "b_ru", "b_c"), LSTM: ("x", "h_prev", "w", "b")}
UNREAD_WITHOUT_PEEPHOLE = PEEPHOLES + ("cs",)


def unread(op, attributes):
    """Names of the inputs whose values do not matter under these attributes."""
    more = op == LSTM and not attributes["use_peephole"]
    return UNREAD[op] + (UNREAD_WITHOUT_PEEPHOLE if more else ())


def shapes(op, batch, input_size, cell_size):
    """The shape of every input, in numbers."""
    sizes = {"batch": batch, "input_size": input_size, "cell_size": cell_size}
    return {name: [eval(dim, {}, sizes) for dim in dims] for name, dims in SHAPES[op].items()}


def forward_inputs(op, batch, input_size, cell_size, dtype=np.float32, seed=0):
    """Inputs of the cell whose gradient `op` is, of sizes that keep the gates off saturation."""
    random = np.random.RandomState([seed, batch, input_size, cell_size])
    rows = max(1, input_size + cell_size)
    inputs = {}
    for name, shape in list(shapes(op, batch, input_size, cell_size).items())[: FORWARD_INPUTS[op]]:
        value = random.standard_normal(shape)
        if name.startswith("w") and len(shape) == 2:
            value /= np.sqrt(rows)
        inputs[name] = value.astype(dtype)
    return inputs


def forward(op, inputs, use_peephole=False):
    """The cell's outputs in float64, from the oracle."""
    if op == GRU:
        return oracle.gru_block_cell(**inputs)
    return oracle.lstm_block_cell(use_peephole=use_peephole, cell_clip=0.0, **inputs)


def grad_inputs(op, batch, input_size, cell_size, dtype=np.float32, use_peephole=False, seed=0):
    """Inputs of `op`: those of the cell, its activations, and random incoming gradients."""
    inputs = forward_inputs(op, batch, input_size, cell_size, dtype, seed)
    outputs = forward(op, inputs, use_peephole)
    random = np.random.RandomState([seed + 1, batch, input_size, cell_size])
    for name in list(SHAPES[op])[FORWARD_INPUTS[op] :]:
        incoming = random.standard_normal([batch, cell_size])
        inputs[name] = outputs.get(name, incoming).astype(dtype)
    return inputs


def expected(op, inputs, use_peephole=False):
    """What `op` has to return, from the oracle."""
    if op == GRU:
        return oracle.gru_block_cell_grad(**inputs)
    return oracle.lstm_block_cell_grad(use_peephole=use_peephole, **inputs)


def accuracy_limits(op, inputs, want, limit, use_peephole=False):
    """The scaled error to accept for every output: `limit`, but for what cannot be had.

    Where batch and cell_size are 1, the scaled error is one element's relative error, and a
    difference of nearly equal terms makes it large however it is computed. There, four times the
    effect of one rounding of each input is accepted. Near zero, half has an absolute spacing, and
    one half of that is accepted too.
    """
    random = np.random.RandomState(3)
    moved = {
        name: value.astype(np.float64) * (1 + 2.0**-24 * random.choice([-1, 1], value.shape))
        for name, value in inputs.items()
    }
    spacing = np.nextafter(np.zeros(1, inputs["x"].dtype), np.ones(1, inputs["x"].dtype))[0]
    limits = {}
    for name, value in expected(op, moved, use_peephole).items():
        limits[name] = limit
        if inputs["h_prev"].size == 1:
            limits[name] = max(limit, 4 * scaled_error(value, want[name]))
        if want[name].any():
            limits[name] += float(spacing) / 2 / np.abs(want[name]).max()
    return limits


def scaled_error(got, want):
    """The error max |got - want| / max |want|, where a `want` of zeros counts as 1."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.size == 0:
        return 0.0
    scale = np.abs(want).max()
    return np.abs(got - want).max() / (scale if scale > 0 else 1.0)


def assert_close(got, want, limit, what=""):
    """Compares dictionaries of outputs by `scaled_error`.

    Args:
      got: The outputs.
      want: What they have to be.
      limit: The error to accept, one number or a dictionary with one for each output.
      what: Words to begin a message with.
    """
    assert set(got) == set(want)
    for name in want:
        most = limit[name] if isinstance(limit, dict) else limit
        error = scaled_error(got[name], want[name])
        assert error <= most, f"{what} {name}: scaled error {error:.3g} is above {most:.3g}"
