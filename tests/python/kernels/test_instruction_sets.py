"""Our kernels against the oracle on the instruction sets below the machine's best.

The best is what all other tests run on.
"""

import pytest

import blockcell
from helpers import isolated

pytestmark = pytest.mark.once

ORDER = ["portable", "avx2", "avx2_vnni", "avx512", "avx512_vnni", "avx512_bf16", "avx512_amx"]


@pytest.mark.parametrize("isa", ["portable", "avx2", "avx512"])
def test_accuracy(isa):
    best = blockcell.info()["isa"]
    if ORDER.index(isa) >= ORDER.index(best):
        pytest.skip(f"the machine's best is {best}")
    environment = {"BLOCKCELL_ISA": isa, "BLOCKCELL_OVERRIDE": "0"}
    outcomes = isolated.run("accuracy", ["instruction_set", "failures"], environment)
    assert isolated.value(outcomes["instruction_set"]) == isa
    failures = isolated.value(outcomes["failures"])
    assert not failures, "\n".join(failures[:20])
