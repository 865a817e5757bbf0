#!/bin/sh
# Creates .venv and installs the locked packages and toold itself, editable. Usage: scripts/setup.sh run|dev
# Nothing is resolved: requirements/*.txt list every package with its hashes. Uses uv if it is installed.
set -eu
cd "$(dirname "$0")/.."
lock="requirements/$1.txt"

fail() { printf 'setup: %s\n' "$1" >&2; exit 1; }

usable() { "$1" -c 'import sys; sys.exit(not sys.version_info >= (3, 11))' 2>/dev/null; }
find_python() {
    for python in "${PYTHON:-python3}" python3.13 python3.12 python3.11 python3.14 python; do
        if usable "$python"; then printf '%s' "$python"; return; fi
    done
    fail 'Python 3.11 or newer was not found; set PYTHON=/path/to/python3'
}

if ! usable .venv/bin/python; then
    python=$(find_python)
    rm -rf .venv
    "$python" -m venv .venv || fail "'$python -m venv' failed; on Debian and Ubuntu: apt install python3-venv"
fi

if command -v uv >/dev/null 2>&1; then
    set -- uv pip install --quiet --python .venv/bin/python
else
    set -- .venv/bin/python -m pip install --quiet --disable-pip-version-check
fi
printf 'setup: installing the packages of %s into .venv\n' "$lock" >&2
"$@" --no-deps --require-hashes -r "$lock"
"$@" --no-deps --no-build-isolation --editable .

# The build maps src/ to the name toold; mypy does not read the build and uses a symbolic link.
mkdir -p .venv/types
ln -sfn ../../src .venv/types/toold
