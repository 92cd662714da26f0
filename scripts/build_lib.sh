#!/usr/bin/env bash
# Builds the library for the TensorFlow in the Python $1: build/tf-<major.minor>/libblockcell.so.
# With `failpoints` as $2, the variant for the tests of panics, in build/failpoints/.
#
# All builds share one target directory, so the kernels are compiled once. Only the shim and the
# bridge are compiled for each TensorFlow.
set -euo pipefail
cd "$(dirname "$0")/.."

variant=${2:-}
folder=build/${variant:+$variant/}$(scripts/tf_minor.sh "$1")
library=$folder/libblockcell.so
sources=(Cargo.toml Cargo.lock build.rs cpp src kernels/Cargo.toml kernels/src)
if [ ! -e "$library" ] || [ -n "$(find "${sources[@]}" -newer "$library" -print -quit)" ]; then
  # Cargo gives every variant's library the same name: without the old one it cannot take it for this.
  rm -f target/release/deps/libblockcell.so
  scripts/cargo_tf.sh "$1" build --release ${variant:+--features "$variant"}
  mkdir -p "$folder"
  # Not in place: a process may have the old library mapped.
  cp target/release/libblockcell.so "$library.new"
  mv "$library.new" "$library"
fi
echo "$library"
