#!/usr/bin/env bash
# found_environments.sh: the virtual environments of `make test` whose Python is on this machine, as
# targets of make. Their packages are downloaded side by side then.
set -euo pipefail
cd "$(dirname "$0")"

echo .venv/.complete
lines="1.15 2.4"
! ./find_java.sh > /dev/null 2>&1 || lines+=" 2.18"
for tf in $lines; do
  ! ./find_python.sh $tf > /dev/null 2>&1 || echo ".venv-$tf/.complete"
done
