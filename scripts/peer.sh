#!/bin/sh
# Creates .venv/peers/NAME with the locked packages of tests/peers/NAME-requirements.txt. Usage: scripts/peer.sh NAME
set -eu
cd "$(dirname "$0")/.."
lock="tests/peers/$1-requirements.txt"
directory=".venv/peers/$1"
rm -rf "$directory"
.venv/bin/python -m venv --without-pip "$directory"
printf 'setup: installing the packages of %s into %s\n' "$lock" "$directory" >&2
if command -v uv >/dev/null 2>&1; then
    uv pip install --quiet --python "$directory/bin/python" --no-deps --require-hashes -r "$lock"
else
    .venv/bin/python -m pip --python "$directory/bin/python" install --quiet --disable-pip-version-check \
        --no-deps --require-hashes -r "$lock"
fi
