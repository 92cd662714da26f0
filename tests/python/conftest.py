"""Loads the library once for all tests of this process, beside the stock kernels."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ["BLOCKCELL_OVERRIDE"] = "0"

import pytest  # noqa: E402

import blockcell  # noqa: E402


def pytest_sessionstart():
    try:
        blockcell.load()
    except ImportError as error:
        pytest.exit(str(error), returncode=4)


def pytest_report_header():
    import tensorflow as tf

    return f"tensorflow {tf.__version__}, library {blockcell.find_library()}"
