"""Runs Keras's own tests of LSTM, GRU and Bidirectional on blockcell's kernels.

The tests are those that the installed Keras brings; Keras 2 brings none. Arguments are passed on to
pytest. The exit code is pytest's; 1 also if no layer ran on the kernels.
"""

import os
import sys
import unittest.mock
from pathlib import Path

import pytest

os.environ.pop("BLOCKCELL_OVERRIDE", None)
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

FILES = ("lstm_test.py", "gru_test.py", "bidirectional_test.py")


def main():
    """Finds the tests, enables the kernels, and runs them."""
    import tensorflow as tf

    import blockcell
    from blockcell.keras import dispatch

    module = sys.modules[tf.keras.layers.LSTM.__module__]
    folder = Path(module.__file__).parent
    files = [str(folder / name) for name in FILES if (folder / name).is_file()]
    if not files:
        sys.exit(f"this Keras, {tf.keras.__version__}, brings no tests of its layers")
    blockcell.keras.enable()
    with unittest.mock.patch.object(dispatch, "run", side_effect=dispatch.run) as run:
        # No settings and no cache in the folder of the package.
        quiet = ["-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider"]
        code = pytest.main(quiet + files + sys.argv[1:])
    print(f"{run.call_count} calls ran on the kernels of {blockcell.find_library()}")
    return int(code) or int(not run.call_count)


if __name__ == "__main__":
    sys.exit(main())
