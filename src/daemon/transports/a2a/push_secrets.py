"""Encrypts the headers of push notifications, for the database. Needs the extra ``a2a``."""

import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class PushSecrets:
    """AES-256-GCM with a key that is kept outside of the database.

    Raises:
        ImportError: the extra is not installed.
    """

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - optional, and slow to import

        self._cipher: Any = AESGCM(key)

    def sealed(self, headers: Mapping[str, str], place: str) -> bytes:
        """The encrypted headers of the configuration at ``place``; they can be opened only there."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + bytes(self._cipher.encrypt(nonce, msgspec.json.encode(headers), place.encode()))

    def opened(self, sealed: bytes, place: str) -> dict[str, str] | None:
        """The headers; None if they were encrypted with another key or for another place."""
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - loaded by now

        try:
            content = self._cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode())
        except InvalidTag:
            return None
        return msgspec.json.decode(content, type=dict[str, str])
