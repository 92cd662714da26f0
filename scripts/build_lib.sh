#!/usr/bin/env bash
# Builds the library for the TensorFlow in the Python $1: build/tf-<major.minor>/libblockcell.so.
# With `failpoints` as $2, the variant for the tests of panics, in build/failpoints/.
set -euo pipefail
cd "$(dirname "$0")/.."

variant=${2:-}
minor=$(scripts/tf_minor.sh "$1")
folder=build/${variant:+$variant/}$minor
# Panics need no speed, and are built in half the time without.
scripts/cargo_tf.sh "$1" build --release ${variant:+--features "$variant" \
  --config profile.release.package.blockcell.opt-level=0}
if ! cmp --silent "target/$minor/release/libblockcell.so" "$folder/libblockcell.so"; then
  mkdir -p "$folder"
  # Not in place: a process may have the old library mapped.
  cp "target/$minor/release/libblockcell.so" "$folder/libblockcell.so.new"
  mv "$folder/libblockcell.so.new" "$folder/libblockcell.so"
fi
echo "$folder/libblockcell.so"
