"""First order gradients of every op and output, against those of the same op in plain float64."""

import pytest
import tensorflow as tf

from blockcell_tools.reference.inputs import forward
from helpers import checks, gradient_cases, kernels, ways
from helpers.gradient_cases import GATES, OUTPUTS, STATES, TIME, VARIANTS, WITH_SWITCH, inputs_for


def every_mixture(op):
    """Each output alone, all states, all gates, one of both, and everything."""
    alone = [(name,) for name in OUTPUTS[op]]
    states, gates = STATES[op], GATES[op]
    mixtures = alone + [states, gates, (gates[0], states[-1]), OUTPUTS[op]]
    return sorted(set(mixtures))


@pytest.mark.parametrize("op, attributes, names", gradient_cases.with_losses(every_mixture))
@pytest.mark.parametrize("way", ["graph" if ways.TF1 else "tape"])
def test_every_output(way, op, attributes, names):
    gradient_cases.check(way, op, attributes, names)


OTHER_WAYS = [way for way in ways.WAYS if way != "tape"]


@pytest.mark.skipif(ways.TF1, reason="TensorFlow 2 only")
@pytest.mark.parametrize(
    "op, attributes, names",
    gradient_cases.with_losses(lambda op: [STATES[op], OUTPUTS[op]], WITH_SWITCH),
)
@pytest.mark.parametrize("way", OTHER_WAYS)
def test_every_way(way, op, attributes, names):
    gradient_cases.check(way, op, attributes, names)


@pytest.mark.parametrize("op, attributes", gradient_cases.params(VARIANTS))
def test_the_plain_ops_are_the_ops(op, attributes):
    """Else their gradients would be the truth about something else."""
    inputs = inputs_for(op)
    with ways.our_graph() as graph:
        got = kernels.call(op, {n: tf.constant(v) for n, v in inputs.items()}, **attributes)
        want = ways.plain(op, attributes)(ways.in_float64(inputs))
    with tf.compat.v1.Session(graph=graph) as session:
        got, want = session.run([got, want])
    if "seq_len_max" in inputs:  # What lies behind it is undefined in TensorFlow's own kernels.
        got, want = ({n: v[: TIME[1] - 1] for n, v in those.items()} for those in (got, want))
    checks.assert_close(got, want, 1e-5)


@pytest.mark.parametrize("op, attributes", gradient_cases.params(VARIANTS))
def test_clipping_is_put_to_the_test(op, attributes):
    """The cases of this file clip some, but not all cell states."""
    limit = attributes.get("cell_clip", 0.0)
    if limit > 0:
        inputs = inputs_for(op)
        states = forward(op, inputs, **attributes)["cs"]
        assert 0.1 < (abs(states) == limit).mean() < 0.9
