"""SavedModels that Keras 2 wrote, for `test_keras2`: each function loads one in some way."""

import functools
import tarfile
import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import blockcell
from helpers.failures import uncancelled
from rewrite import config, counted

MODELS = Path(__file__).resolve().parent.parent / "graph_pass" / "keras2"
VERSION = tuple(map(int, tf.__version__.split(".")[:2]))
v1 = tf.compat.v1


def prepare():
    blockcell.load()


def unpacked(name):
    """The folder of a model, and what was written beside it."""
    folder = tempfile.mkdtemp()
    with tarfile.open(str(MODELS / (name + ".tar.xz"))) as archive:
        archive.extractall(folder)
    path = Path(folder) / "model"
    with np.load(str(path / "values.npz")) as values:
        return str(path), dict(values)


@functools.lru_cache(maxsize=None)
def loaded(name):
    """The object of a model, and what was written beside it. Loading takes seconds."""
    path, values = unpacked(name)
    return tf.saved_model.load(path), values


def errors(values, got):
    """For each of some values, the largest difference as a part of the largest element."""
    scaled = {}
    for name, value in got.items():
        want = values[name].astype(np.float64)
        assert want.shape == value.shape, name
        scale = max(np.abs(want).max(), 1e-30) if want.size else 1.0
        scaled[name] = float(np.abs(want - value).max(initial=0.0) / scale)
    return scaled


def session(name):
    """Outputs in a session, as Java and C++ run it."""
    path, values = unpacked(name)

    def infer():
        # TensorFlow places the graph when variables are restored.
        with tf.Graph().as_default(), v1.Session(config=config(True)) as running:
            model = v1.saved_model.load(running, ["serve"], path)
            signature = model.signature_def["serving_default"]
            (x,) = signature.inputs.values()
            outputs = [signature.outputs[key].name for key in sorted(signature.outputs)]
            return {"outputs": running.run(outputs, {x.name: values["x"]})}

    got = counted(infer)
    # The names of several outputs have another order.
    total = lambda y: float(np.abs(y).sum())  # noqa: E731
    named = {key: y for key, y in values.items() if key.startswith("output_")}
    want = dict(zip(named, sorted(named.values(), key=total)))
    results = dict(zip(named, sorted(got["outputs"], key=total)))
    return {"errors": errors(want, results), "rewritten": got["rewritten"]}


def function(name):
    """Outputs of the loaded object's call in a function, and gradients through it."""
    model, values = loaded(name)

    @tf.function
    def infer(x):
        return tf.nest.flatten(model(x, training=False))

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs = tf.nest.flatten(model(x, training=False))
            total = tf.add_n([tf.reduce_sum(y * tf.cos(y)) for y in outputs])
        return tape.gradient(total, [x, *model.trainable_variables])

    states = [variable for variable in model.variables if not variable.trainable]
    x, first = tf.constant(values["x"]), [state.numpy() for state in states]
    got = counted(lambda: {f"output_{k}": y.numpy() for k, y in enumerate(infer(x))})
    rewritten = got.pop("rewritten")
    for state, value in zip(states, first):
        state.assign(value)
    trained = counted(lambda: {f"gradient_{k}": dx.numpy() for k, dx in enumerate(train(x))})
    trains = trained.pop("rewritten")
    got.update(trained)
    functions = infer.get_concrete_function(x).graph.as_graph_def().library.function
    return {
        "has_marks": any("api_implements" in function.attr for function in functions),
        "values": {key: y.tolist() for key, y in got.items()},
        "errors": errors(values, got),
        "rewritten": rewritten,
        "trains": trains,
    }


def training(name):
    """Gradients that are taken in other ways, each with what was rewritten for it."""
    model, values = loaded(name)
    variables = model.trainable_variables

    def total(x):
        outputs = tf.nest.flatten(model(x, training=False))
        return tf.add_n([tf.reduce_sum(y * tf.cos(y)) for y in outputs])

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(x)
        return tape.gradient(y, [x, *variables])

    def second(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            norms = tf.add_n([tf.reduce_sum(dx * dx) for dx in first(x)])
        return tape.gradient(norms, [x, *variables])

    x = values["x"]
    step = tf.function(first, input_signature=[tf.TensorSpec([None, None, x.shape[2]], x.dtype)])

    @tf.function
    def steps(x):
        return tf.while_loop(
            lambda k, *_: k < 2,
            lambda k, *sums: [k + 1] + [a + b for a, b in zip(sums, first(x))],
            [tf.constant(0)] + [tf.zeros_like(v) for v in [x, *variables]],
        )[1:]

    ways = {
        "in a function": lambda: step(tf.constant(x)),
        "in a loop": lambda: steps(tf.constant(x)),
        "at once": lambda: first(tf.constant(x)),
        "twice": lambda: tf.function(second)(tf.constant(x)),
        "no rows": lambda: step(tf.constant(x[:0])),
        "no steps": lambda: step(tf.constant(x[:, :0])),
        "one step": lambda: step(tf.constant(x[:, :1])),
    }
    # TensorFlow 2.4 does not come to an end with it, and takes all memory.
    if VERSION < (2, 9):
        del ways["twice"]

    def run(way):
        try:
            gradients = {str(k): dx.numpy().tolist() for k, dx in enumerate(uncancelled(way))}
            return {"values": gradients}
        except tf.errors.OpError as error:
            return {"values": type(error).__name__}

    return {case: counted(functools.partial(run, way)) for case, way in ways.items()}


def serving(name):
    """A model's signature as a function that returns arrays by name, and the model's values."""
    if not tf.__version__.startswith("1."):
        model, values = loaded(name)  # It holds the variables.
        (key,) = model.signatures["serving_default"].structured_input_signature[1]

        def serve(x):
            outputs = model.signatures["serving_default"](**{key: tf.constant(x)})
            return {name: y.numpy() for name, y in outputs.items()}

        return serve, values
    path, values = unpacked(name)
    running = v1.Session(graph=tf.Graph(), config=config(True))
    with running.graph.as_default():
        signature = v1.saved_model.load(running, ["serve"], path).signature_def["serving_default"]
    (x_info,) = signature.inputs.values()
    outputs = {name: info.name for name, info in signature.outputs.items()}
    return lambda x: running.run(outputs, {x_info.name: x}), values


def edges(name):
    """What malformed and extreme inputs give."""
    serve, values = serving(name)
    x = values["x"]
    holes = x.copy()
    holes[1, 1] = 0  # No mask on the right.
    results = {}
    for case, fed in {
        "no rows": x[:0],
        "no steps": x[:, :0],
        "one step": x[:, :1],
        "holes": holes,
        "all masked": np.zeros_like(x),
        "nan": np.where(x > 0.9, np.nan, x).astype(x.dtype),
    }.items():
        try:
            outputs = uncancelled(functools.partial(serve, fed))
            results[case] = {name: y.tolist() for name, y in outputs.items()}
        except tf.errors.OpError as error:
            results[case] = type(error).__name__
    return results


for _path in MODELS.glob("*.tar.xz"):
    for _kind in (session, function, training, edges):
        _name = _path.name[: -len(".tar.xz")]
        globals()[f"{_kind.__name__}_{_name}"] = functools.partial(_kind, _name)
