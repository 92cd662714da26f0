#!/usr/bin/env bash
# Prints tf-<major.minor> of the TensorFlow in the Python $1.
set -euo pipefail

TF_CPP_MIN_LOG_LEVEL=3 "$1" -W ignore -c "
import tensorflow as tf
print('tf-' + '.'.join(tf.__version__.split('.')[:2]))" 2> /dev/null || {
  echo "$1 has no TensorFlow: name a Python that has one, PYTHON=/path/to/python" >&2
  exit 1
}
