#!/bin/sh
# Installs atheris, locked in tests/fuzz/requirements.txt, into .venv/fuzz, from which only `make fuzz` imports.
set -eu
cd "$(dirname "$0")/.."
lock=tests/fuzz/requirements.txt
directory=.venv/fuzz
rm -rf "$directory"
printf 'setup: installing the packages of %s into %s\n' "$lock" "$directory" >&2
if command -v uv >/dev/null 2>&1; then
    install="uv pip install --quiet --python .venv/bin/python"
else
    install=".venv/bin/python -m pip install --quiet --disable-pip-version-check"
fi
if ! $install --target "$directory" --no-deps --require-hashes -r "$lock"; then
    printf 'fuzz: atheris could not be installed. It has wheels for Linux on x86-64; elsewhere only the saved inputs run, in make test.\n' >&2
    exit 1
fi
