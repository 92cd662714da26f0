#!/usr/bin/env bash
# Builds the library for the TensorFlow in the Python $1: build/tf-<major.minor>/libblockcell.so.
# With `failpoints` as $2, the variant for the tests of panics, in build/failpoints/.
set -euo pipefail

python=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
PYTHONPATH=$(dirname "$0")/../python exec "$python" -c "from blockcell.building import main; main()" "${@:2}"
