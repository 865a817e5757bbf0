"""Signs the cards of agents with ES256, and publishes the public key. Needs the extra ``a2a``."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from ....protocol.a2a.card_signature import base64url, protected_header, signed_forms, signing_input

_MAX_KEPT: Final = 256
"""The number of cached signatures. Each new signature of the same card differs, so they are cached to keep the card
stable.
"""
_NUMBER_BYTES: Final = 32
"""The bytes of a coordinate, and of each half of a signature, on the curve P-256."""


class CardKeyError(Exception):
    """The key cannot be used; the message says why, and contains no part of the key."""


class CardSigner:
    """Signs with one key.

    Raises:
        CardKeyError: the file is not a PEM key on the curve P-256 without a passphrase, or the extra is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - optional, and slow to import
            from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415
        except ImportError:
            raise CardKeyError("signing cards needs the extra a2a: pip install 'toold[a2a]'") from None
        try:
            key = load_pem_private_key(path.read_bytes(), None)
        except OSError as error:
            raise CardKeyError(f"cannot be read ({error.strerror})") from None
        except (ValueError, TypeError):
            raise CardKeyError("must be a private key in PEM without a passphrase") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise CardKeyError("must be a key on the curve P-256 (openssl ecparam -name prime256v1 -genkey -noout)")
        self._key = key
        numbers = key.public_key().public_numbers()
        point = {name: _encoded(number) for name, number in (("x", numbers.x), ("y", numbers.y))}
        thumbprint = msgspec.json.encode({"crv": "P-256", "kty": "EC", **point}, order="sorted")
        self.key_id: Final = base64url(hashlib.sha256(thumbprint).digest()).decode()
        """The thumbprint of RFC 7638."""
        self.jwks: Final = msgspec.json.encode(
            {"keys": [{"kty": "EC", "crv": "P-256", **point, "kid": self.key_id, "use": "sig", "alg": "ES256"}]}
        )
        """The key set with the public key."""
        self._kept: dict[bytes, str] = {}

    def __repr__(self) -> str:
        return f"<CardSigner {self.key_id}>"

    def signed(self, card: Mapping[str, Any], jwks_url: str) -> dict[str, Any]:
        """The card with its signatures. ``jwks_url``: where clients find ``jwks``."""
        header = protected_header(self.key_id, jwks_url)
        signatures = [
            {"protected": header.decode(), "signature": self._signature(signing_input(header, form))}
            for form in signed_forms(card)
        ]
        return {**card, "signatures": signatures}

    def _signature(self, content: bytes) -> str:
        kept = self._kept.get(content)
        if kept is None:
            from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415 - loaded by now
            from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

            halves = utils.decode_dss_signature(self._key.sign(content, ec.ECDSA(SHA256())))
            kept = base64url(b"".join(half.to_bytes(_NUMBER_BYTES, "big") for half in halves)).decode()
            if len(self._kept) >= _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[content] = kept
        return kept


def _encoded(number: int) -> str:
    return base64url(number.to_bytes(_NUMBER_BYTES, "big")).decode()
