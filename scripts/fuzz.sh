#!/usr/bin/env bash
# fuzz.sh TARGET [libFuzzer's options]: runs a target of fuzz/ under AddressSanitizer, beginning with its corpus.
# fuzz.sh TARGET FILE: runs it on one input.
# What it finds of new inputs is in build/fuzz-TARGET, and what breaks a target in build/fuzz-artifacts.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1
shift
tools=build/tools
[ -x $tools/bin/cargo-fuzz ] || cargo install --quiet --locked --root $tools --version 0.13.2 cargo-fuzz
# Instrumentation is a feature of Rust that is not stable yet; this makes the stable compiler accept it.
export RUSTC_BOOTSTRAP=1
export PATH="$PWD/$tools/bin:$PATH"
run=(cargo fuzz run --target-dir target/fuzz "$target")
[ $# -eq 1 ] && [ -f "$1" ] && exec "${run[@]}" "$(realpath "$1")"
new="$PWD/build/fuzz-$target" artifacts="$PWD/build/fuzz-artifacts"
mkdir -p "$new" "$artifacts"
exec "${run[@]}" "$new" "fuzz/corpus/$target" -- \
  -artifact_prefix="$artifacts/$target-" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 "$@"
