"""What a process writes to its standard error, from C++ and Rust, too."""

import contextlib
import os
import tempfile


@contextlib.contextmanager
def captured():
    """Yields a list; when the block ends, it has all that was written meanwhile as one string."""
    written = []
    with tempfile.TemporaryFile() as file:
        stderr = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield written
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
        file.seek(0)
        written.append(file.read().decode())
