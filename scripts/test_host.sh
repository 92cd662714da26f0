#!/usr/bin/env bash
# test_host.sh PYTHON [COMMAND...]: tests the library in a Rust program that hosts the TensorFlow of
# PYTHON by its C API (tests/host). COMMAND is for cargo, instead of `test`: `clippy`, say.
#
# Building that program needs pkg-config and OpenSSL's development files. Without them nothing is
# tested; with REQUIRE_HOST=1 that is an error.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$1
shift
[ $# -gt 0 ] || set -- test

if ! pkg-config --exists openssl 2> /dev/null; then
  missing="no openssl.pc is found by pkg-config (apt-get install pkg-config libssl-dev)"
  [ "${REQUIRE_HOST:-}" != 1 ] || { echo "$missing" >&2; exit 1; }
  echo "skipped the Rust program that hosts TensorFlow: $missing"
  exit
fi

minor=$(scripts/tf_minor.sh "$python")
tensorflow=$("$python" -c "
import importlib.util
print(importlib.util.find_spec('tensorflow').submodule_search_locations[0])")
for library in tensorflow_cc tensorflow_framework; do
  [ -e "$tensorflow/lib$library.so.2" ] || { echo "$minor of $python has no lib$library.so.2" >&2; exit 1; }
done

# What tensorflow-sys looks for, made from what the package has.
folder=$PWD/build/host/$minor
mkdir -p "$folder"
ln -sf "$tensorflow/libtensorflow_cc.so.2" "$folder/libtensorflow.so"
ln -sf "$tensorflow/libtensorflow_framework.so.2" "$folder/libtensorflow_framework.so"
cat > "$folder/tensorflow.pc" << EOF
Name: tensorflow
Description: The TensorFlow of a Python package
Version: ${minor#tf-}
Libs: -L"$folder" -ltensorflow -ltensorflow_framework
EOF

# tensorflow-sys would download a TensorFlow if it found none: give it nowhere to put it.
export TF_RUST_DOWNLOAD_DIR=/dev/null
export PKG_CONFIG_PATH=$folder${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export LD_LIBRARY_PATH=$tensorflow${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export BLOCKCELL_LIBRARY=$PWD/build/$minor/libblockcell.so
# Quiet: no messages about the machine. oneDNN has none of these operations.
export TF_CPP_MIN_LOG_LEVEL=2 TF_ENABLE_ONEDNN_OPTS=0
# A pool for each session, of the size that it asks for, instead of one for all.
export TF_OVERRIDE_GLOBAL_THREADPOOL=1

command=$1
shift
exec cargo "$command" --locked --quiet --manifest-path tests/host/Cargo.toml --target-dir target/host "$@"
