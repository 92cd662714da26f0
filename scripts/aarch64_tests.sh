#!/usr/bin/env bash
# aarch64_tests.sh PYTHON: builds the library for aarch64 and two releases of TensorFlow, and tests it in them
# under emulation. PYTHON has TensorFlow 2.21 for this machine, to compare with.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1

# Runs the emulated Python with TensorFlow $1.
emulated() {
  PYTHONPATH=python:tests/python BLOCKCELL_LIBRARY=$PWD/build/aarch64/tf-$1/libblockcell.so \
    TF_CPP_MIN_LOG_LEVEL=2 nice -n 10 "build/aarch64/bin/python-$1" "${@:2}"
}

for minor in 2.12 2.21; do
  package=$PWD/build/aarch64/tensorflow-$minor/tensorflow
  library=$(scripts/aarch64.sh scripts/build_lib.sh "$python" --package "$package" | tail -n 1)
  scripts/aarch64.sh "$python" scripts/symbol_versions.py "$library"
  echo "TensorFlow $minor: the flags that its files tell are those that it states"
  cmp <("$python" scripts/tensorflow_flags.py "$package" | sed -n '/^blockcell$/,$p') \
    <(emulated "$minor" scripts/tensorflow_flags.py | sed -n '/^blockcell$/,$p')
done

emulated 2.12 -m blockcell verify --quick --ops LSTMBlockCell,BlockLSTMGradV2
emulated 2.21 -m blockcell verify --quick
losses=build/aarch64/losses.json
library=$(scripts/build_lib.sh "$python" | tail -n 1)
BLOCKCELL_LIBRARY=$library PYTHONPATH=python "$python" scripts/aarch64_training.py > $losses
emulated 2.21 scripts/aarch64_training.py $losses
emulated 2.21 -m robustness --share=100 --modes eager --results build/aarch64/robustness
emulated 2.21 -m pytest -q -p no:cacheprovider tests/python/graph_pass/test_own_cells.py \
  tests/python/library/test_own_ops.py
