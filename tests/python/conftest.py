"""Loads the library once for all tests of this process, beside the stock kernels."""

import collections
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["BLOCKCELL_OVERRIDE"] = "0"
# NumPy's products are small: a second thread would wait for them, and keep a processor busy.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest  # noqa: E402

import blockcell  # noqa: E402
from helpers import isolated, sampling  # noqa: E402

ONCE = "once: TensorFlow 1.15 leaves it out, as its subject does not depend on TensorFlow's release"


def pytest_configure(config):
    config.addinivalue_line("markers", ONCE)
    # The order below, not that of pytest-xdist, which puts files with few tests last.
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(config, items):
    """Files with few tests first: those start processes, and are long.

    A worker of pytest-xdist takes whole files. If a long one came last, the others would idle.
    """
    again = [item for item in items if item.get_closest_marker("once") and not _runs_once_here()]
    if again:
        config.hook.pytest_deselected(items=again)
        items[:] = [item for item in items if not item.get_closest_marker("once")]
    tests = collections.Counter(map(_file, items))
    items.sort(key=lambda item: tests[_file(item)])


def pytest_collection_finish():
    isolated.freeze_objects()


def _runs_once_here():
    import tensorflow as tf

    return sampling.whole_in(tf)


def _file(item):
    return item.nodeid.partition("::")[0]


def pytest_sessionstart():
    try:
        blockcell.load()
    except ImportError as error:
        pytest.exit(str(error), returncode=4)


@pytest.fixture(scope="session", autouse=True)
def no_pass_fails():
    """A pass that fails in this process leaves its graph as it was, which no result shows."""
    yield
    assert not blockcell.info()["failed_passes"], "see the standard error of this process"


def pytest_report_header():
    import tensorflow as tf

    return f"tensorflow {tf.__version__}, library {blockcell.find_library()}"
