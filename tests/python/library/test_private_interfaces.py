"""Each private interface of TensorFlow and Keras is taken away: one warning, and all else works."""

import pytest
import tensorflow as tf

from blockcell import tf_internals
from helpers import isolated

TF1 = tf.__version__.startswith("1.")
# What the program of `private_interfaces.py` does not come to, or only with Keras.
NOT_ASKED = {"prepare_step", "waiting_for", "graph_of_functions"}
NOT_ASKED_IN_1_15 = {"drop_eager_kernels", "saved_model", "tape_follows"}
OF_KERAS = {
    *("in_save_context", "in_xla_context", "loop_of_layers", "inner_layers", "set_attribute"),
    "tape_records",
}
NAMES = sorted(set(tf_internals.INTERFACES) - (OF_KERAS if TF1 else set()))


@pytest.mark.parametrize("name", NAMES)
def test_without(name):
    (outcome,) = isolated.run("private_interfaces", ["without_" + name]).values()
    warnings = isolated.value(outcome)
    if name in NOT_ASKED or (TF1 and name in NOT_ASKED_IN_1_15):
        assert set(warnings) <= {line for line in warnings if named(name, line)}
    else:
        assert len([line for line in warnings if named(name, line)]) >= 1, warnings


def named(name, line):
    """Whether a warning names an interface and what is off without it."""
    interface = tf_internals.INTERFACES[name]
    return interface.name in line and interface.without in line


def test_no_other_module_uses_one():
    """Modules of TensorFlow and Keras that are private are imported in one place."""
    package = isolated.PATHS[0] / "blockcell"
    for file in package.rglob("*.py"):
        if file.name != "tf_internals.py" and "bench" not in file.parts:
            text = file.read_text(encoding="utf-8")
            assert "tensorflow.python." not in text.replace("blockcell.tf_internals", ""), file
            assert "import tensorflow.python" not in text, file
