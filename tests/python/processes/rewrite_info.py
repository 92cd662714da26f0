"""What the library says when it is loaded, for `graph_pass/test_networks.py`."""

import os
import tempfile

import blockcell


def info():
    """What `blockcell.info()` returns, and what went to stderr while the library was loaded."""
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            blockcell.load()
            answer = blockcell.info()
        finally:
            os.dup2(stderr, 2)
        file.seek(0)
        return answer, file.read().decode()
