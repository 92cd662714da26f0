#!/usr/bin/env bash
# Prints a Python that the TensorFlow line $1 (such as 1.15) has wheels for. Looks on the PATH and
# among pyenv's versions.
set -euo pipefail

case $1 in
  1.15) versions="3.7" ;;
  2.4) versions="3.8 3.7" ;;
  2.12) versions="3.11 3.10 3.9" ;;
  2.16 | 2.18) versions="3.11 3.12 3.10 3.9" ;;
  2.21) versions="3.11 3.12 3.13" ;;
  *) echo "no known TensorFlow line: $1" >&2; exit 1 ;;
esac

for version in $versions; do
  for python in "$(command -v "python$version" || true)" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
    # A pyenv shim exists for versions that are not active; only one that runs counts.
    if [ -x "$python" ] && "$python" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2> /dev/null; then
      echo "$python"
      exit
    fi
  done
done
echo "TensorFlow $1 needs one of these Pythons, on the PATH or in pyenv: $versions" >&2
exit 1
