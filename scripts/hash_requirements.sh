#!/usr/bin/env bash
# hash_requirements.sh UV: writes each python/requirements/NAME.txt from NAME.in: the same packages, with
# the hashes of all files that the registry has for their versions, which pip then insists on.
set -euo pipefail
uv=$(realpath "$1")
cd "$(dirname "$0")/../python/requirements"

for pinned in *.in; do
  name=${pinned%.in}
  platform=()
  case $name in
    aarch64-*) python=3.11 platform=(--python-platform aarch64-manylinux_2_28) ;;
    tf-1.15) python=3.7 ;;
    tf-2.4) python=3.8 ;;
    *) python=3.11 ;;
  esac
  UV_CUSTOM_COMPILE_COMMAND="make requirements" "$uv" pip compile --quiet --no-deps --no-annotate \
    --generate-hashes --python-version $python "${platform[@]}" "$pinned" --output-file "$name.txt"
done
