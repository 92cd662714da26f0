"""Cases of cuDNN's ops: the passes over a network, and the conversions of its parameters."""

import functools

import numpy as np

from blockcell.op_table import CUDNN
from blockcell_tools.cudnn_calls import FORWARD_INPUTS
from blockcell_tools.reference import cudnn
from blockcell_tools.reference.cudnn import Network
from blockcell_tools.reference.cudnn_inputs import BACKPROP, FORWARD, LIMIT, expected, inputs_of
from robustness import calling, judging, shapes
from robustness.judging import Case

OPS = CUDNN
TIME, BATCH = 5, 3
NETWORKS = (
    Network("lstm", 4, 2, 2, 2),
    Network("gru", 3, 2),
    Network("rnn_tanh", 3, 3, 1, 2, skip_input=True),
    Network("lstm", 4, 2, 1, 1, num_proj=3),
)
SIZES = ("num_layers", "num_units", "input_size")
NUMBERS = (0, 1, -1, 3, 2**20, 2**31 - 1, -(2**31))


class Malformed(ValueError):
    """The call is not what the op takes."""


def cases(op):
    """Every case of an op."""
    if op.startswith("CudnnRNNParams") or op.startswith("CudnnRNNCanonical"):
        yield from _conversions(op)
        return
    for network in NETWORKS:
        if network.num_proj and not op.endswith("V3"):
            continue
        for dtype in (np.float32, np.float16):
            for time_major in (True, False) if op.endswith("V3") else (True,):
                yield from _passes(op, network, dtype, time_major)


# The passes.


def _attributes(op, network, time_major):
    attributes = dict(network.attributes)
    if op.endswith("V3"):
        attributes.update(time_major=time_major, num_proj=network.num_proj)
    return attributes


@functools.lru_cache(maxsize=None)
def _inputs(op, network, dtype, time_major):
    """Valid inputs; those of a Backprop have what its forward op returned."""
    everything = inputs_of(network, TIME, BATCH, dtype, time_major=time_major)
    names = FORWARD_INPUTS if op.endswith("V3") else FORWARD_INPUTS[:-1]
    inputs = {name: everything[name] for name in names}
    if "Backprop" not in op:
        return inputs
    forward = op.replace("Backprop", "")
    attributes = _attributes(forward, network, time_major)
    answer = calling.answer("session", forward, inputs, attributes)
    saved = dict(zip((*FORWARD, "reserve_space", "host_reserved"), answer.values))
    inputs.update((name, saved[name]) for name in FORWARD)
    inputs.update((f"{name}_backprop", everything[f"{name}_backprop"]) for name in FORWARD)
    inputs.update((name, saved[name]) for name in saved if name.endswith(("space", "reserved")))
    return inputs


def _passes(op, network, dtype, time_major):
    attributes = _attributes(op, network, time_major)
    is_forward = "Backprop" not in op
    title = f"{network.rnn_mode} {np.dtype(dtype).name}" + ("" if time_major else " batch-major")

    def case(what, change, blame, attributes=attributes):
        return Case(
            op,
            f"{title}: {what}",
            lambda: dict(_inputs(op, network, dtype, time_major), **change),
            attributes,
            functools.partial(_problem_of_pass, attributes),
            functools.partial(_inaccuracy_of_pass, op, attributes, network, dtype, time_major),
            tuple(blame),
        )

    yield case("good", {}, [op])
    everything = inputs_of(network, TIME, BATCH, dtype, time_major=time_major)
    for name, value in _shapes_of_pass(op, network, everything).items():
        # Sizes are taken from the first ones, and others are blamed if they disagree.
        blame = [name, "params", "input_size", *(FORWARD if name == "input" else ())]
        blame += list(_all_names(op)) if name in FORWARD_INPUTS[:3] else []
        for what, shape in shapes.wrong(value.shape):
            change = {name: np.ones(shape, value.dtype)}
            yield case(f"{name}, {what}", change, blame)
        if is_forward or name.endswith("_backprop"):
            for what, odd in shapes.odd_values(value):
                yield case(f"{name}, {what}", {name: odd}, [name])
    if op.endswith("V3"):
        for number in (*shapes.LENGTHS, TIME, TIME + 1):
            for place in (..., -1):
                value = everything["sequence_lengths"].copy()
                value[place] = number
                if is_forward or not 0 <= number <= TIME:
                    what = f"sequence_lengths[{place}] is {number}"
                    yield case(what, {"sequence_lengths": value}, ["sequence_lengths"])
        for number in (-(2**63), -1, 1, 5, 2**40):
            if number != network.num_proj:
                blame = ["num_proj", "input_h", "input_c", "params"]
                yield case(f"num_proj {number}", {}, blame, dict(attributes, num_proj=number))
    for number in shapes.FLOATS:
        if not 0 < number <= 1:  # Masks are drawn; other tests look at them.
            yield case(f"dropout {number}", {}, ["dropout"], dict(attributes, dropout=number))


def _all_names(op):
    names = [*FORWARD_INPUTS, "num_layers", "num_units"]
    if "Backprop" in op:
        names += [*FORWARD, *(f"{name}_backprop" for name in FORWARD), "reserve_space"]
    return names


def _shapes_of_pass(op, network, everything):
    """Arrays of the right shapes, without running the forward op."""
    names = FORWARD_INPUTS if op.endswith("V3") else FORWARD_INPUTS[:-1]
    found = {name: everything[name] for name in names}
    if "Backprop" in op:
        found.update((name, everything[f"{name}_backprop"]) for name in FORWARD)
        found.update((f"{name}_backprop", everything[f"{name}_backprop"]) for name in FORWARD)
        found["reserve_space"] = np.zeros(_reserve_space(network, everything["input"].dtype), "f")
        found["reserve_space"] = found["reserve_space"].astype(everything["input"].dtype)
    return found


def _reserve_space(network, dtype):
    """How long it is, as `docs/cudnn.md` says."""
    steps = TIME * BATCH
    of_mode = {"lstm": 7, "gru": 5}.get(network.rnn_mode, 1)
    whole = network.pseudo_layers * of_mode * steps * network.num_units
    if network.num_proj:
        whole += network.pseudo_layers * steps * network.num_proj
    whole += (network.num_layers - 1) * network.directions * steps * network.outputs
    return whole * 4 // np.dtype(dtype).itemsize


def _expect(condition, text):
    if not condition:
        raise Malformed(text)


def _shape(name, value, dims):
    got = np.shape(value)
    fits = len(got) == len(dims) and all(d in (None, n) for d, n in zip(dims, got))
    _expect(fits, f"{name} has the shape {got}, not {dims}")
    return got


def _network_of(attributes, inputs):
    """What attributes and shapes say: the network, the time and the batch."""
    time_major = attributes.get("time_major", True)

    def tensor(name, first, batch, last):
        dims = (first, batch, last) if time_major else (batch, first, last)
        got = _shape(name, inputs[name], dims)
        return got if time_major else (got[1], got[0], got[2])

    mode, num_proj = attributes["rnn_mode"], attributes.get("num_proj", 0)
    dropout = attributes.get("dropout", 0.0)
    _expect(0 <= dropout <= 1, f"dropout is {dropout}")
    _expect(num_proj == 0 or (mode == "lstm" and num_proj > 0), f"num_proj is {num_proj}")
    time, batch, width = tensor("input", None, None, None)
    layers, _, outputs = tensor("input_h", None, batch, num_proj or None)
    units = outputs if not num_proj else tensor("input_c", layers, batch, None)[2]
    directions = 2 if attributes["direction"] == "bidirectional" else 1
    _expect(layers > 0 and layers % directions == 0, f"there are {layers} layers")
    _expect(num_proj <= units, f"num_proj is {num_proj}")
    skips = attributes["input_mode"] == "skip_input"
    _expect(not skips or width == units, f"input_size is {width}")
    network = Network(mode, units, width, layers // directions, directions, skips, num_proj)
    states = [("input_h", outputs), ("input_c", units)]
    states += [("output_h", outputs), ("output_c", units)]
    states += [("output_h_backprop", outputs), ("output_c_backprop", units)]
    for name, columns in states:
        if name in inputs and (mode == "lstm" or "_c" not in name):
            tensor(name, layers, batch, columns)
    for name in ("output", "output_backprop"):
        if name in inputs:
            tensor(name, time, batch, directions * outputs)
    _shape("params", inputs["params"], (cudnn.params_size(network),))
    if "sequence_lengths" in inputs:
        lengths = inputs["sequence_lengths"]
        _shape("sequence_lengths", lengths, (batch,))
        _expect(((lengths >= 0) & (lengths <= time)).all(), f"sequence_lengths are {lengths}")
    return network, time, batch


def _problem_of_pass(attributes, inputs):
    try:
        network, time, batch = _network_of(attributes, inputs)
        if "reserve_space" in inputs:
            _expect((time, batch) == (TIME, BATCH), "activations are those of another call")
            dtype = inputs["input"].dtype
            _shape("reserve_space", inputs["reserve_space"], (_reserve_space(network, dtype),))
    except Malformed as error:
        return str(error)
    return None


def _inaccuracy_of_pass(op, attributes, network, dtype, time_major, inputs, got):
    """Outputs in the op's order; those that no oracle knows are left out."""
    everything = inputs_of(network, TIME, BATCH, dtype, time_major=time_major)
    network, _, _ = _network_of(attributes, inputs)
    names = BACKPROP if "Backprop" in op else FORWARD
    if "Backprop" in op:
        # A tensor that is not used may be another one than the forward op had.
        everything.update((n, inputs[n]) for n in inputs if n in everything)
        with np.errstate(all="ignore"):
            want = expected(network, everything, time_major)
    else:
        of_op = {name: inputs[name] for name in FORWARD_INPUTS if name in inputs}
        with np.errstate(all="ignore"):
            want = cudnn.forward(network, **of_op, time_major=time_major)
    pairs = [(name, value) for name, value in zip(names, got) if name in want]
    want = {name: want[name] for name, _ in pairs}
    return judging.inaccuracy([value for _, value in pairs], want, dtype, LIMIT[dtype])


# The conversions of parameters.


def _conversions(op):
    for network in NETWORKS:
        if network.num_proj and op in ("CudnnRNNParamsToCanonical", "CudnnRNNCanonicalToParams"):
            continue
        for dtype in (np.float32, np.float16):
            yield from _conversions_of(op, network, dtype)


def _conversions_of(op, network, dtype):
    params = np.arange(cudnn.params_size(network), dtype=np.float64) / 100
    params = params.astype(dtype)
    weights, biases = cudnn.to_canonical(network, params)
    weights, biases = [[one.astype(dtype) for one in some] for some in (weights, biases)]
    good = {name: np.int32(getattr(network, name)) for name in SIZES}
    attributes = dict(network.attributes)
    counts = {}
    if "ToParams" in op:
        good.update(weights=weights, biases=biases)
    elif op == "CudnnRNNParamsSize":
        attributes.update(T=np.dtype(dtype).name, S="int32", num_proj=network.num_proj)
    else:
        good["params"] = params
        counts = {"num_params": len(weights)}
        if op.endswith("V2"):
            counts = {"num_params_weights": len(weights), "num_params_biases": len(biases)}
    if op.endswith("V2"):
        attributes["num_proj"] = network.num_proj
    attributes.update(counts)

    def case(what, change, blame, more=()):
        all_attributes = dict(attributes, **dict(more))
        return Case(
            op,
            f"{network.rnn_mode} {np.dtype(dtype).name}: {what}",
            lambda: dict(good, **change),
            all_attributes,
            functools.partial(_problem_of_conversion, op, network, all_attributes, counts),
            functools.partial(_inaccuracy_of_conversion, op, network, all_attributes, dtype),
            tuple(blame),
        )

    kin = [*SIZES, "params", "params_size", "weights", "biases", "num_proj"]
    kin += ["num_params", "num_params_weights", "num_params_biases"]
    yield case("good", {}, [op])
    for name in SIZES:
        for number in NUMBERS:
            yield case(f"{name} is {number}", {name: np.int32(number)}, kin)
        for what, shape in shapes.wrong(()):
            value = np.full(shape, good[name], np.int32)
            yield case(f"{name}, {what}", {name: value}, [name])
    yield case("all sizes are the largest", dict.fromkeys(SIZES, np.int32(2**31 - 1)), kin)
    for name in ("params", "weights", "biases"):
        arrays = good.get(name, [])
        for place in {0, len(arrays) - 1} if isinstance(arrays, list) and arrays else ():
            for what, shape in shapes.wrong(arrays[place].shape):
                value = list(arrays)
                value[place] = np.ones(shape, dtype)
                yield case(f"{name}[{place}], {what}", {name: value}, [name])
        if isinstance(arrays, np.ndarray):
            for what, shape in shapes.wrong(arrays.shape):
                yield case(f"{name}, {what}", {name: np.ones(shape, dtype)}, [name, "params"])
    for name in counts:
        for number in (1, counts[name] + 1, 500):
            yield case(f"{name} is {number}", {}, [name, *counts], {name: number})


def _problem_of_conversion(op, network, attributes, counts, inputs):
    try:
        for name in SIZES:
            _shape(name, inputs[name], ())
            _expect(inputs[name] >= 0, f"{name} is negative")
        layers, units, width = (int(inputs[name]) for name in SIZES)
        _expect(layers > 0, "there are no layers")
        _expect(network.num_proj <= units, "num_proj is more than num_units")
        _expect(not network.skip_input or width == units, "input_size is not num_units")
        other = network._replace(num_layers=layers, num_units=units, input_size=width)
        if (layers, units, width) != tuple(getattr(network, name) for name in SIZES):
            # The numbers of parameters are those of the network alone.
            _expect(op == "CudnnRNNParamsSize", "the sizes are those of another network")
            _expect(_params_size(other) < 2**31, "params_size is too large")
        if "params" in inputs:
            _shape("params", inputs["params"], (cudnn.params_size(network),))
            for name in counts:
                _expect(attributes[name] == counts[name], f"{name} is wrong")
        for name, want in zip(("weights", "biases"), cudnn.to_canonical(network, _zeros(network))):
            for got, wanted in zip(inputs.get(name, ()), want):
                _expect(got.size == wanted.size, f"{name} have other sizes")
    except Malformed as error:
        return str(error)
    return None


def _params_size(network):
    """`cudnn.params_size` of any number of layers: those above the second are alike."""
    one, two = (
        cudnn.params_size(network._replace(num_layers=layers))
        for layers in (min(network.num_layers, 2), min(network.num_layers, 3))
    )
    return one + (two - one) * max(0, network.num_layers - 2)


def _zeros(network):
    return np.zeros(cudnn.params_size(network))


def _inaccuracy_of_conversion(op, network, attributes, dtype, inputs, got):
    if op == "CudnnRNNParamsSize":
        layers, units, width = (int(inputs[name]) for name in SIZES)
        other = network._replace(num_layers=layers, num_units=units, input_size=width)
        want = _params_size(other)
        return None if np.asarray(got[0]).tolist() == [want] else f"{got}, expected {want}"
    if "params" in inputs:
        both = cudnn.to_canonical(network, inputs["params"])
        want = [*both[0], *both[1]]
    else:
        like = cudnn.to_canonical(network, _zeros(network))
        some = (inputs["weights"], inputs["biases"])
        shaped = [[g.reshape(w.shape) for g, w in zip(*two)] for two in zip(some, like)]
        want = [cudnn.to_params(network, *shaped)]
    same = len(got) == len(want)
    for one, other in zip(got, want):
        same = same and one.dtype == dtype and np.array_equal(one, other)
    return None if same else "the values are not the parameters"
