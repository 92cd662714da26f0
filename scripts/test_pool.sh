#!/usr/bin/env bash
# tsan.sh [SECONDS]: drives the thread pool under ThreadSanitizer, so many seconds a case.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
c++ -std=c++17 -O1 -g -fsanitize=thread -pthread -I tests/pool/stubs -I . \
  cpp/pool.cc cpp/processors.cc tests/pool/main.cc -o build/pool_test
# Without randomised addresses, which not every version of ThreadSanitizer can do with.
TSAN_OPTIONS="halt_on_error=1 exitcode=66" exec setarch --addr-no-randomize build/pool_test "${1:-5}"
