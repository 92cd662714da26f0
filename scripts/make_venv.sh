#!/usr/bin/env bash
# make_venv.sh VENV PYTHON REQUIREMENTS: a virtual environment with exactly those packages.
set -euo pipefail
venv=$1 python=$2 requirements=$3

echo "setting up $venv with $requirements"
[ -x "$venv/bin/python" ] || "$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements"
touch "$venv/.complete"
