#!/usr/bin/env bash
# cargo_tf.sh PYTHON COMMAND...: runs cargo COMMAND on the shared library, for the TensorFlow in PYTHON.
set -euo pipefail

command -v cargo > /dev/null || { echo "cargo is missing: install Rust 1.89 or later (rustup)" >&2; exit 1; }
command -v c++ > /dev/null || { echo "a C++ compiler is missing: install g++" >&2; exit 1; }
python=$1 command=$2
shift 2
BLOCKCELL_PYTHON=$(cd "$(dirname "$python")" && pwd)/$(basename "$python") \
  exec cargo "$command" --locked --quiet --package blockcell "$@"
