#!/usr/bin/env bash
# test_pool.sh [SECONDS [thread]]: drives the thread pool, so many seconds a case; under ThreadSanitizer with `thread`.
set -euo pipefail
cd "$(dirname "$0")/.."
program=build/pool_test${2:+-$2}
mkdir -p build
c++ -std=c++17 -O1 -g ${2:+-fsanitize="$2"} -pthread -I tests/pool/stubs -I . \
  cpp/pool.cc cpp/processors.cc tests/pool/main.cc -o "$program"
if [ -z "${2:-}" ]; then exec "$program" "${1:-0.2}"; fi
# Without randomised addresses, which not every version of ThreadSanitizer can do with.
TSAN_OPTIONS="halt_on_error=1 exitcode=66" exec setarch --addr-no-randomize "$program" "$1"
