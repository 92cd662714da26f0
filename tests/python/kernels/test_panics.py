"""A panic in Rust becomes an Internal error with its message, and the next call works.

Needs the variant of the library that panics on demand, which `make test` builds.
"""

import pytest

import blockcell
from blockcell.op_table import BLOCK_GRU, BLOCK_LSTM_GRAD, GRU_CELL_GRAD, LSTM_CELL
from helpers import isolated

# find_library gives build/tf-<minor>/libblockcell.so.
FOLDER = blockcell.find_library().parent
LIBRARY = FOLDER.parent / "failpoints" / FOLDER.name / "libblockcell.so"


@pytest.mark.skipif(not LIBRARY.is_file(), reason="make test builds build/failpoints")
@pytest.mark.parametrize(
    "place, op",
    [
        ("compute", LSTM_CELL),
        ("compute", BLOCK_GRU),
        ("task", GRU_CELL_GRAD),
        ("task", BLOCK_LSTM_GRAD),
    ],
)
def test_panic(place, op):
    environment = {
        "BLOCKCELL_TEST_LIBRARY": str(LIBRARY),
        "FAILPOINTS": place + "=1*panic(the reason)",
    }
    message = isolated.value(isolated.run("panics", [op], environment)[op])
    assert op in message
    assert "the reason" in message


@pytest.mark.skipif(not LIBRARY.is_file(), reason="make test builds build/failpoints")
def test_panic_in_a_pass():
    """The graph stays as it was, and the failure is counted."""
    environment = {"BLOCKCELL_TEST_LIBRARY": str(LIBRARY), "FAILPOINTS": "pass=panic(the reason)"}
    outcome = isolated.value(isolated.run("panics", ["in_a_pass"], environment)["in_a_pass"])
    assert outcome["failed"] > 0
    assert not any(outcome["rewritten"].values()) and outcome["ops"]["GRUBlockCell"]
