"""The key files of a state directory, for encrypted or signed data in the database: keys of 32 bytes, one per line."""

import hashlib
import hmac
import secrets
from pathlib import Path
from typing import Final

from .state_directory import StateError, read_private, write_private

CREDENTIAL_KEY_FILE: Final = "credentials.key"
"""Encrypts the credentials of users."""
PUSH_KEY_FILE: Final = "a2a.key"
"""Encrypts the secrets of push notifications."""
DEPLOY_KEY_FILE: Final = "deploy.key"
"""The keys of deployed containers are derived from it."""
KEY_BYTES: Final = 32
_LINE_BYTES: Final = 2 * KEY_BYTES + 1
KEY_FILES: Final = (CREDENTIAL_KEY_FILE, PUSH_KEY_FILE, DEPLOY_KEY_FILE)


def make_key_files(directory: Path, audit_key: bytes) -> None:
    """Creates the missing key files of a node. Each key is derived from the audit key, which all nodes share, so that
    every node can read the data of the others.

    Raises:
        StateError: a file cannot be written.
    """
    for name in KEY_FILES:
        path = directory / name
        if path.exists():
            continue
        _write(path, hmac.digest(audit_key, b"toold key file " + name.encode(), hashlib.sha256))


def load_or_create_keys(path: Path, *, max_keys: int, remedy: str) -> list[bytes]:
    """Returns the keys of a file; a missing file gets a random key. ``remedy`` says what to do if the file is damaged.

    Raises:
        StateError: the file cannot be used, or a line is not a key.
    """
    if not path.exists():
        _write(path, secrets.token_bytes(KEY_BYTES))
    try:
        lines = read_private(path, _LINE_BYTES * (max_keys + 1)).split()
    except OSError as error:
        raise StateError(f"the key file {path} cannot be used ({error.strerror})") from None
    try:
        keys = [bytes.fromhex(line.decode("ascii")) for line in lines]
    except ValueError:
        keys = []
    if not 0 < len(keys) <= max_keys or any(len(key) != KEY_BYTES for key in keys):
        count = "one key" if max_keys == 1 else f"1 to {max_keys} keys, one per line, each"
        raise StateError(f"{path} must contain {count} of {2 * KEY_BYTES} hexadecimal digits; {remedy}")
    return keys


def _write(path: Path, key: bytes) -> None:
    try:
        write_private(path, key.hex().encode() + b"\n")
    except OSError as error:
        raise StateError(f"the key file {path} cannot be created ({error.strerror})") from None
