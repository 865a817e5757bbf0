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

# Shows how far pip is: one line that is rewritten on a terminal, elsewhere a line per ten packages.
show_progress() {
    count=0 end='\n' every=10
    if [ -t 2 ]; then end='\r' every=1; fi
    while read -r word package _; do
        case $word in
            Collecting | Ignoring)
                count=$((count + 1))
                [ $((count % every)) -ne 0 ] || printf "setup: %3d of %d packages  %-40.40s$end" "$count" "$1" "$package" >&2 ;;
            Installing) printf 'setup: writing the packages into .venv; this takes up to a minute          \n' >&2 ;;
        esac
    done
}

printf 'setup: installing the packages of %s into .venv\n' "$lock" >&2
if command -v uv >/dev/null 2>&1; then  # it shows its progress itself, on a terminal
    quiet=--quiet
    if [ -t 2 ]; then quiet=; fi
    # shellcheck disable=SC2086 # empty, or one option
    uv pip install $quiet --python .venv/bin/python --no-deps --require-hashes -r "$lock"
    set -- uv pip install --quiet --python .venv/bin/python
else
    set -- .venv/bin/python -m pip install --disable-pip-version-check
    # The pipe's status is the loop's, so pip's comes through descriptor 3.
    status=$({ { code=0; "$@" --no-deps --require-hashes -r "$lock" 3>&- || code=$?; printf %s "$code" >&3; } \
        | show_progress "$(grep -c '^[A-Za-z0-9].*==' "$lock")"; } 3>&1) || true
    [ "$status" = 0 ] || fail "pip failed (exit code $status); its messages are above"
    set -- "$@" --quiet
fi
"$@" --no-deps --no-build-isolation --editable .

# The build maps src/ to the name toold; mypy does not read the build and uses a symbolic link.
mkdir -p .venv/types
ln -sfn ../../src .venv/types/toold
