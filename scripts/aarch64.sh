#!/usr/bin/env bash
# aarch64.sh COMMAND...: runs a command that builds for aarch64, such as cargo, with what aarch64_setup.sh has
# set up. cargo runs programs of aarch64 under emulation.
set -euo pipefail
folder=$(cd "$(dirname "$0")/.." && pwd)/build/aarch64

export PATH=$folder/bin:$PATH
for program in rustc rustdoc; do
  [ ! -x "$folder/bin/$program" ] || export "${program^^}=$folder/bin/$program"
done
export CARGO_BUILD_TARGET=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$folder/bin/qemu-aarch64-static -L $folder/system"
export CXX=aarch64-linux-gnu-g++ OBJDUMP=aarch64-linux-gnu-objdump STRIP=aarch64-linux-gnu-strip
exec "$@"
