"""The key files of a state directory that encrypt or sign what is in the database: one key of 32 bytes each."""

import hashlib
import hmac
from pathlib import Path
from typing import Final

from .state_directory import StateError, write_private

CREDENTIAL_KEY_FILE: Final = "credentials.key"
"""Encrypts the credentials of users."""
PUSH_KEY_FILE: Final = "a2a.key"
"""Encrypts the secrets of push notifications."""
DEPLOY_KEY_FILE: Final = "deploy.key"
"""The keys of deployed containers are derived from it."""
KEY_FILES: Final = (CREDENTIAL_KEY_FILE, PUSH_KEY_FILE, DEPLOY_KEY_FILE)


def make_key_files(directory: Path, audit_key: bytes) -> None:
    """Makes the missing key files of a node. Each key is derived from the audit key, which all nodes share, so that
    every node can read what another one has stored.

    Raises:
        StateError: a file cannot be written.
    """
    for name in KEY_FILES:
        path = directory / name
        if path.exists():
            continue
        key = hmac.new(audit_key, b"toold key file " + name.encode(), hashlib.sha256)
        try:
            write_private(path, key.hexdigest().encode() + b"\n")
        except OSError as error:
            raise StateError(f"the key file {path} cannot be created ({error.strerror})") from None
