"""Levels of precision: how they are chosen, what they promise, and where they run."""

import pytest

import blockcell
from helpers import isolated

VARIABLES = (
    "BLOCKCELL_FLOAT32_MATMUL_PRECISION",
    "ONEDNN_DEFAULT_FPMATH_MODE",
    "TF_SET_ONEDNN_FPMATH_MODE",
)
# The models of the instructions run on every processor.
MODELS = ("portable_bf16", "portable_amx")
MODEL = {"BLOCKCELL_ISA": MODELS[0]}


def run(names, **environment):
    changes = {**dict.fromkeys(VARIABLES), **environment}
    outcomes = isolated.run("precision", names, changes)
    return [isolated.value(outcomes[name]) for name in names]


@pytest.mark.parametrize(
    "values, level",
    [
        ((None, None, None), "highest"),
        (("medium", None, None), "medium"),
        (("high", "BF16", "BF16"), "high"),
        (("highest", "BF16", "BF16"), "highest"),
        (("", "bf16", None), "medium"),
        ((None, "ANY", None), "medium"),
        ((None, "STRICT", "BF16"), "medium"),
        ((None, "STRICT", "STRICT"), "highest"),
        (("low", None, None), "highest"),
    ],
)
def test_environment(values, level):
    assert run(["by_default"], **dict(zip(VARIABLES, values))) == [level]


def test_choice():
    told, (message, level) = run(["chosen", "refused"], **MODEL)
    isa = "portable_bf16"
    assert told[0] == ["medium", isa, "medium", "medium"]
    assert told[1:] == [["high", isa, "high", "highest"], ["highest", isa, "highest", "highest"]]
    assert level == "medium" and "'low'" in message and "'highest'" in message


def test_without_the_instructions_the_highest_runs():
    [told] = run(["chosen"], BLOCKCELL_ISA="portable")
    assert [runs for *_, runs in told] == ["highest"] * 3


@pytest.mark.once
@pytest.mark.parametrize("isa", [*MODELS, "portable", "avx512_bf16", "avx512_amx"])
def test_accuracy(isa):
    if isa not in ("portable", *MODELS) and isa != blockcell.info()["isa"]:
        pytest.skip("the processor has other instructions")
    [errors] = run(["errors"], BLOCKCELL_ISA=isa)
    for op, (worst, same) in errors.items():
        can = isa != "portable" and op != "GRUBlockCell"
        assert same == {"highest": True, "high": True, "medium": not can}, op
        assert worst["medium"] < 1e-2 and worst["highest"] < 1e-5, op


@pytest.mark.once
@pytest.mark.parametrize(
    "isa, ops", [("portable_bf16", ["BlockLSTMV2"]), ("avx2", ["BlockLSTMV2"]), ("portable", [])]
)
def test_what_ran_is_counted(isa, ops):
    if isa == "avx2" and blockcell.info()["isa"] == "portable":
        pytest.skip("the processor has other instructions")
    assert run(["counted"], BLOCKCELL_ISA=isa) == [ops]


def test_node():
    differs, message = run(["of_a_node"], **MODEL)[0]
    assert differs
    assert "BlockLSTMV2" in message and "_blockcell_precision must be one of highest" in message
