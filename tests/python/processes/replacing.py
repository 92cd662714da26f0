"""What loading does to the gradients of a fresh process, for `test_gradients_registry`."""

import blockcell


def _registered():
    """The module of each op's gradient function, by op; ours have the name of the package."""
    from tensorflow.python.framework import ops

    from helpers import gradient_cases

    names = list(gradient_cases.OPS) + list(gradient_cases.GRADIENT_OPS.values())
    found = {}
    for name in names:
        try:
            function = ops._gradient_registry.lookup(name)
        except LookupError:
            found[name] = None
        else:
            found[name] = function.__module__.replace("tensorflow_core", "tensorflow")
    return found


def keep_then_replace_then_keep():
    """Whose gradients are registered after each of four calls."""
    found = []
    blockcell.load(replace_gradients=False)
    found.append(_registered())
    blockcell.info()
    found.append(_registered())
    blockcell.load()
    found.append(_registered())
    blockcell.load(replace_gradients=False)
    found.append(_registered())
    return found


def one_that_a_user_registered_before_loading():
    """Replaced like TensorFlow's, or kept, and without a second order then."""
    import tensorflow as tf

    @tf.RegisterGradient("GRUBlockCell")
    def users(op, *incoming):
        return [None] * 6

    found = []
    for replace in (False, True):
        blockcell.load(replace_gradients=replace)
        found.append(_registered())
    return [(each["GRUBlockCell"], each["GRUBlockCellGrad"]) for each in found]


def _only(*ops):
    return {op: module for op, module in _registered().items() if op in ops}


def those_that_a_user_registers_after_loading():
    """Whose gradients are registered then, after another load(); and whether the user's is used."""
    import tensorflow as tf

    from helpers import gradient_cases

    blockcell.load()

    @tf.RegisterGradient("GRUBlockCell")
    def users(op, *incoming):
        return [tf.fill(tf.shape(op.inputs[0]), 7.0)] + [None] * 5

    @tf.RegisterGradient("BlockLSTMGrad")
    def users_of_gradient(op, *incoming):
        return [None] * 18

    blockcell.load()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        inputs = gradient_cases.inputs_for("GRUBlockCell")
        tensors = {name: tf.constant(value) for name, value in inputs.items()}
        h = tf.raw_ops.GRUBlockCell(**tensors)[3]
        x_grad = session.run(tf.gradients(h, tensors["x"])[0])
    return (
        _only("GRUBlockCell", "GRUBlockCellGrad"),
        _only("BlockLSTM", "BlockLSTMGrad"),
        float(x_grad.mean()),
    )


def two_that_a_user_registers():
    """TensorFlow's message about the second one."""
    import tensorflow as tf

    blockcell.load()
    tf.RegisterGradient("LSTMBlockCell")(lambda op, *incoming: [None] * 8)
    try:
        tf.RegisterGradient("LSTMBlockCell")(lambda op, *incoming: [None] * 8)
    except KeyError as error:
        return str(error)
    return "no error"


def _inputs():
    import tensorflow as tf

    from blockcell.op_table import BLOCK_LSTM_V2
    from helpers import gradient_cases

    inputs = gradient_cases.inputs_for(BLOCK_LSTM_V2)
    return inputs, {name: tf.constant(value) for name, value in inputs.items()}


def _errors(gradients):
    from blockcell.op_table import BLOCK_LSTM_V2
    from blockcell_tools.reference.inputs import scaled_error
    from helpers import ways

    want = ways.truth(BLOCK_LSTM_V2, _inputs()[0], ("h",), {})
    got = {name: value.numpy() for name, value in gradients.items()}
    return {name: scaled_error(got[name], want[name]) for name in ("x", "w", "b")}


def what_ran_before():
    """Errors of gradients taken before loading, and after it of what ran before it."""
    import tensorflow as tf

    from helpers import ways

    _, tensors = _inputs()
    sources = ways.floating(tensors)

    def loss(tensors):
        factor = ways.weights(["h"])["h"]
        h = tf.raw_ops.BlockLSTMV2(**tensors)[6]
        return tf.reduce_sum(factor * h * (h + factor))

    traced = tf.function(loss)
    traced(tensors)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(sources)
        value = loss(tensors)
    found = {"before": _errors(tape.gradient(value, sources))}
    blockcell.load()
    found["tape"] = _errors(tape.gradient(value, sources))
    found["function"] = _errors(ways.by_tape(traced, tensors))
    return found


def eager_mode_of_1_15():
    """Errors of gradients of both orders, by tapes."""
    import tensorflow as tf

    tf.compat.v1.enable_eager_execution()
    from blockcell_tools.reference.inputs import scaled_error
    from helpers import gradient_cases, ways

    blockcell.load()
    found = {}
    for op, attributes in gradient_cases.WITH_SWITCH:
        if op == "BlockGRU":  # Eager mode of 1.15 does not run the library's kernels.
            continue
        inputs = gradient_cases.inputs_for(op, time=2)
        for names in (gradient_cases.STATES[op], gradient_cases.OUTPUTS[op]):
            for order in (1, 2):
                loss = ways.loss_of(ways.real(op, attributes), names)
                if order == 2:
                    loss = ways.penalty_of(ways.by_tape, loss)
                got = ways.run_eagerly(ways.by_tape, loss, inputs)
                want = ways.truth(op, inputs, names, attributes, order)
                key = "{} {} {}".format(op, "+".join(names), order)
                found[key] = max(scaled_error(got[n], want[n]) for n in want)
    return found
