#!/usr/bin/env bash
# Sets up build/aarch64: compilers of Rust and C++ for aarch64, qemu's emulator, and Python of an aarch64
# Debian. With `tensorflow MINOR PYTHON` as arguments, the packages of that TensorFlow, too, which PYTHON's
# pip downloads. Nothing is installed: apt downloads Debian's packages to this folder, and dpkg unpacks them
# there. It needs no root, but an apt that finds them (Debian 12 on x86-64).
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$PWD/build/aarch64
triple=aarch64-unknown-linux-gnu

# The tools, which run here, and the system that is emulated, with what they depend on.
tools="g++-aarch64-linux-gnu qemu-user-static"
system="python3.11:arm64 libstdc++6:arm64"
# A rustc with this target has what it takes (rustup target add); if not, Debian's.
if ! ls "$(rustc --print sysroot)/lib/rustlib/$triple/lib"/libstd-*.rlib > /dev/null 2>&1; then
  tools+=" rustc-web" system+=" libstd-rust-web-dev:arm64"
fi

# apt with lists, and a state of no installed package, of its own.
private_apt() {
  APT_CONFIG=$folder/apt.conf apt-get -qq -o APT::Sandbox::User=root "$@"
}

download() {
  for program in apt-get dpkg-deb; do
    command -v $program > /dev/null || {
      echo "make aarch64 takes its tools from packages of Debian 12, and $program is missing" >&2
      exit 1
    }
  done
  mkdir -p "$folder"/apt/{lists/partial,cache/archives/partial}
  touch "$folder/apt/status"
  cat > "$folder/apt.conf" << END
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Install-Recommends "false";
Dir::State "$folder/apt";
Dir::State::status "$folder/apt/status";
Dir::Cache "$folder/apt/cache";
END
  private_apt update
  local package
  for package in $tools ${system//:arm64/} python3-distutils; do
    APT_CONFIG=$folder/apt.conf apt-cache show "$package" > /dev/null 2>&1 || {
      echo "make aarch64 needs Debian's package $package, which apt does not find here" >&2
      exit 1
    }
  done
  # One at a time: development files of two architectures cannot be installed side by side.
  for package in $tools $system; do
    private_apt install --download-only --yes "$package" > /dev/null
  done
  # A part of Python that Debian has by itself. It depends on another Python, which is not needed.
  (cd "$folder/apt/cache/archives" && private_apt download python3-distutils)
}

unpack() {
  local package
  for package in "$folder"/apt/cache/archives/*.deb; do
    case $(basename "$package") in
      libstd-rust-web-dev_*_arm64.deb) dpkg-deb --extract "$package" "$folder/tools" ;;
      *_arm64.deb | python3-distutils_*) dpkg-deb --extract "$package" "$folder/system" ;;
      # The C library and what else belongs to the machine.
      libc6_* | libc6-dev_* | libc-* | libcrypt* | dpkg_* | tar_*) ;;
      *) dpkg-deb --extract "$package" "$folder/tools" ;;
    esac
  done
  # A script of the linker, with absolute names.
  sed -i 's#/usr/aarch64-linux-gnu/lib/##g' "$folder/tools/usr/aarch64-linux-gnu/lib/libc.so"
}

# Programs of the tools find libraries that are not where they were meant to be.
wrap() {
  mkdir -p "$folder/bin"
  local program
  for program in "$@"; do
    [ -x "$folder/tools/usr/bin/$program" ] || continue
    cat > "$folder/bin/$program" << END
#!/bin/sh
LD_LIBRARY_PATH=$folder/tools/usr/lib/x86_64-linux-gnu exec $folder/tools/usr/bin/$program "\$@"
END
    chmod +x "$folder/bin/$program"
  done
}

if [ ! -e "$folder/complete" ]; then
  echo "setting up build/aarch64 with packages of Debian"
  rm -rf "$folder"/{apt,bin,tools,system}
  download
  unpack
  wrap rustc rustdoc aarch64-linux-gnu-{gcc,g++,ar,strip,objdump}
  ln -s ../tools/usr/bin/qemu-aarch64-static "$folder/bin/qemu-aarch64-static"
  rm -rf "$folder/apt/cache"
  touch "$folder/complete"
fi

# The environment of that release, but for TensorFlow itself: its package has another name for aarch64.
if [ "${1:-}" = tensorflow ] && [ ! -e "$folder/tensorflow-$2/complete" ]; then
  echo "setting up build/aarch64/tensorflow-$2"
  rm -rf "$folder/tensorflow-$2"
  requirements=$folder/tensorflow-$2.txt
  {
    awk '/^[^ ]/ { tensorflow = /^tensorflow-cpu==/ } !tensorflow' "python/requirements/tf-$2.txt"
    cat "python/requirements/aarch64-$2.txt"
  } > "$requirements"
  platforms=(--platform manylinux2014_aarch64)
  for glibc in {17..36}; do platforms+=(--platform "manylinux_2_${glibc}_aarch64"); done
  "$3" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
    --target "$folder/tensorflow-$2" --python-version 3.11 --implementation cp --only-binary=:all: \
    "${platforms[@]}" --requirement "$requirements"
  cat > "$folder/bin/python-$2" << END
#!/bin/sh
# Python of aarch64 under emulation, with TensorFlow $2. By its name it starts itself again for other processes.
PYTHONHOME=$folder/system/usr PYTHONPATH=\${PYTHONPATH:+\$PYTHONPATH:}$folder/tensorflow-$2 exec \\
  $folder/bin/qemu-aarch64-static -0 $folder/bin/python-$2 -L $folder/system $folder/system/usr/bin/python3.11 "\$@"
END
  chmod +x "$folder/bin/python-$2"
  touch "$folder/tensorflow-$2/complete"
fi
