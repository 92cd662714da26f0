#!/usr/bin/env bash
# make_venv.sh VENV PYTHON REQUIREMENTS: a virtual environment with exactly those packages, whose hashes
# the file has. What they ask for themselves is left out, if it is not named there.
set -euo pipefail
venv=$1 python=$2 requirements=$3

echo "setting up $venv with $requirements"
# An environment whose making was interrupted may have a Python but no pip of its own: it is made anew.
"$venv/bin/python" -c "import sys, pip; sys.exit(sys.prefix == sys.base_prefix)" 2> /dev/null ||
  "$python" -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
  --requirement "$requirements"
touch "$venv/.complete"
