#!/usr/bin/env bash
# Succeeds where a Java that compiles (17 or later) and Maven are found on the PATH.
set -euo pipefail

version=$(javac -version 2>&1) || version=
version=${version#javac }
if [ "${version%%[!0-9]*}" -ge 17 ] 2> /dev/null && command -v java mvn > /dev/null; then exit; fi
echo "needs a JDK, 17 or later, and Maven on the PATH" >&2
exit 1
