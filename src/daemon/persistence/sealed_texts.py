"""Encrypts short texts for the database, with keys outside of it. Needs the package ``cryptography``."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from .key_files import load_or_create_keys

MAX_KEYS: Final = 8
"""The maximum number of keys in a file: the current key, and earlier keys until all texts are encrypted with it."""
_NONCE_BYTES: Final = 12


class SealedTexts:
    """AES-256-GCM. The first key encrypts; all of them decrypt.

    Raises:
        ImportError: the package is not installed.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - optional, and slow to import

        self._ciphers: list[Any] = [AESGCM(key) for key in keys]

    def __repr__(self) -> str:
        return f"<SealedTexts keys={len(self._ciphers)}>"

    def sealed(self, values: Mapping[str, str], place: str) -> bytes:
        """The encrypted texts of ``place``; they can be opened only there."""
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + bytes(self._ciphers[0].encrypt(nonce, msgspec.json.encode(values), place.encode()))

    def opened(self, sealed: bytes, place: str) -> dict[str, str] | None:
        """The texts; None if they were encrypted with another key or for another place."""
        contents = (_decrypted(cipher, sealed, place) for cipher in self._ciphers)
        content = next((content for content in contents if content is not None), None)
        return None if content is None else msgspec.json.decode(content, type=dict[str, str])

    def is_current(self, sealed: bytes, place: str) -> bool:
        """Whether the texts are encrypted with the current key, which is the first one."""
        return _decrypted(self._ciphers[0], sealed, place) is not None


def open_sealed_texts(path: Path) -> SealedTexts:
    """The cipher with the keys of a file, one per line in hexadecimal digits; a missing file gets a new key.

    Raises:
        ImportError: the package is not installed.
        StateError: the file cannot be used, or a line is not a key.
    """
    remedy = "restore it, or remove it: the next start creates a key, and all encrypted data must be entered again"
    return SealedTexts(load_or_create_keys(path, max_keys=MAX_KEYS, remedy=remedy))


def _decrypted(cipher: Any, sealed: bytes, place: str) -> bytes | None:
    from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - loaded by now

    try:
        return bytes(cipher.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], place.encode()))
    except (InvalidTag, ValueError):  # ValueError: the value is too short to have been encrypted
        return None
