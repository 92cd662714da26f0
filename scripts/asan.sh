#!/usr/bin/env bash
# asan.sh [cargo test's options]: the Rust tests under AddressSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
# Instrumentation is a feature of Rust that is not stable yet; this makes the stable compiler accept it.
export RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address"
exec cargo test --locked --quiet --target x86_64-unknown-linux-gnu --target-dir target/asan \
  --package blockcell-kernels --package blockcell-graphs --lib --tests "$@"
