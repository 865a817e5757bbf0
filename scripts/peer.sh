#!/bin/sh
# Makes .venv/peers/NAME with the packages of tests/peers/NAME-requirements.txt, as locked there. Usage: scripts/peer.sh NAME
set -eu
cd "$(dirname "$0")/.."
lock="tests/peers/$1-requirements.txt"
folder=".venv/peers/$1"
rm -rf "$folder"
.venv/bin/python -m venv --without-pip "$folder"
printf 'setup: installing the packages of %s into %s\n' "$lock" "$folder" >&2
if command -v uv >/dev/null 2>&1; then
    uv pip install --quiet --python "$folder/bin/python" --no-deps --require-hashes -r "$lock"
else
    .venv/bin/python -m pip --python "$folder/bin/python" install --quiet --disable-pip-version-check \
        --no-deps --require-hashes -r "$lock"
fi
