"""What the library says when it is loaded, for `graph_pass/test_networks.py`."""

import blockcell
from helpers import stderr


def info():
    """What `blockcell.info()` returns, and what went to stderr while the library was loaded."""
    with stderr.captured() as written:
        blockcell.load()
        answer = blockcell.info()
    return answer, written[0]
