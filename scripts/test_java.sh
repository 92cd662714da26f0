#!/usr/bin/env bash
# test_java.sh PYTHON: tests the library for the TensorFlow in PYTHON in the Java program of that
# TensorFlow (examples/java). PYTHON computes what the program has to find. The program takes the library
# out of a wheel, here one that has nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
scripts/find_java.sh
minor=$(scripts/tf_minor.sh "$python")
case $minor in
  tf-1.15) module=tensorflow-1.15 ;;
  tf-2.4) module=tensorflow-core-0.3 ;;
  tf-2.18) module=tensorflow-core-1.1 ;;
  *) echo "no Java program is for $minor" >&2; exit 1 ;;
esac

"$python" scripts/symbol_versions.py "build/$minor/libblockcell.so"

# Quiet: no messages about the machine.
export TF_CPP_MIN_LOG_LEVEL=2
values=build/java/$minor
"$python" examples/java/make_values.py "$values"
"$python" examples/java/make_losses.py "$values"

wheel=$(realpath "$values")/blockcell.whl
"$python" -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as wheel:
    wheel.write("build/" + sys.argv[2], "blockcell/lib/" + sys.argv[2])' "$wheel" "$minor/libblockcell.so"

echo "Java: $module, on build/$minor/libblockcell.so"
exec mvn --quiet --batch-mode --no-transfer-progress --file examples/java --projects "$module" \
  compile exec:exec -Dlibrary="$wheel" -Dvalues="$values"
