"""Each program on the page of errata prints, on TensorFlow alone, what the page's table says."""

import pytest
import tensorflow as tf

from errata_program import errata
from helpers import isolated

PROGRAMS, TABLE = errata.programs(), errata.table()
FOREIGN_MEMORY = ("A state of a wrong size", "Peephole weights of a wrong length")
"""Where TensorFlow reads memory that is not its own, which may end the process."""


def test_table_has_each_program():
    assert list(PROGRAMS) == list(TABLE) != []


@pytest.mark.parametrize("heading", list(PROGRAMS))
def test_program(heading):
    said = TABLE[heading].get(tf.__version__)
    if said is None:
        pytest.skip(f"the page does not name TensorFlow {tf.__version__}")
    code, printed, _ = isolated.run_program("errata_program", [heading], {})
    allowed = {said, errata.ENDED} if heading in FOREIGN_MEMORY else {said}
    assert errata.outcome(code, printed) in allowed
