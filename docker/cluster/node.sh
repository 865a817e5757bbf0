#!/bin/sh
# Starts one node of compose.yaml, or another command of toold with the node's database: node.sh [COMMAND...]
set -eu
TOOLD_STORE=$(cat "${SECRETS:=/run/secrets}/store")
TOOLD_TOKEN=$(cat "$SECRETS/token")
export TOOLD_STORE TOOLD_TOKEN
# The daemon accepts only a key that belongs to its user and that no other user can read.
umask 077
cp "$SECRETS/audit_key" "$TOOLD_STATE_DIR/audit.key"
if [ $# -eq 0 ]; then
    set -- serve
fi
exec toold "$@"
