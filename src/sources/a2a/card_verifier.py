"""Verifies the signatures of an agent's card: ES256, with keys that the operator named. Needs the extra ``a2a``."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from ...protocol.a2a.card_signature import of_base64url, signed_forms, signing_input
from ...protocol.a2a.remote_card import UnusableCardError
from ...version import install_extra

MAX_SIGNATURES: Final = 20
"""The maximum number of signatures of one card. Each is checked with each key and each form of the card."""
MAX_KEYS: Final = 20
_NUMBER_BYTES: Final = 32
_DEPTH: Final = 64
_NAMED: Final = re.compile(r"[\x21-\x7e]{1,200}")


def keys_in(document: object) -> list[Mapping[str, Any]]:
    """The keys of a JWK set, or a single key.

    Raises:
        UnusableCardError: the document is neither.
    """
    listed = document.get("keys") if isinstance(document, Mapping) and "keys" in document else [document]
    if not isinstance(listed, list) or not all(isinstance(key, Mapping) for key in listed) or len(listed) > MAX_KEYS:
        raise UnusableCardError(f"the keys of verify are not a JWK set of at most {MAX_KEYS} keys")
    return listed


def verified_key(card: Mapping[str, Any], keys: Sequence[Mapping[str, Any]]) -> str:
    """Returns the name of the key that signed a card, for its pin.

    Raises:
        UnusableCardError: none of the keys signed it.
    """
    signatures = card.get("signatures")
    if not isinstance(signatures, list) or not signatures:
        raise UnusableCardError("it is not signed, and verify demands a signature")
    _check_depth(card, _DEPTH)
    unsigned = {name: value for name, value in card.items() if name != "signatures"}
    try:
        forms = signed_forms(unsigned)
    except ValueError as error:
        raise UnusableCardError(str(error)) from None
    public = [(_key_name(key), key.get("kid"), _public_key(key)) for key in keys]
    for each in signatures[:MAX_SIGNATURES]:
        header, signature = _signature(each)
        if header is None:
            continue
        for name, key_id, key in public:
            meant = key_id is None or header[1] in {None, key_id}
            if meant and any(_fits(key, signature, signing_input(header[0], form)) for form in forms):
                return name
    raise UnusableCardError("none of its signatures is a valid ES256 signature of a key in verify")


def _check_depth(value: object, left: int) -> None:
    if left == 0:
        raise UnusableCardError(f"it is nested more than {_DEPTH} levels deep")
    children = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for child in children:
        _check_depth(child, left - 1)


def _signature(value: object) -> tuple[tuple[bytes, str | None] | None, bytes]:
    """The protected header with its key's id, and the signature; None if it is not ES256."""
    try:
        protected, signature = value["protected"], of_base64url(value["signature"])  # type: ignore[index]
        header = msgspec.json.decode(of_base64url(protected))
        known = isinstance(header, dict) and header.get("alg") == "ES256" and "crit" not in header
    except (TypeError, KeyError, ValueError, AttributeError, UnicodeError):
        return None, b""
    if not known or len(signature) != 2 * _NUMBER_BYTES:
        return None, b""
    key_id = header.get("kid")
    return (protected.encode(), key_id if isinstance(key_id, str) else None), signature


def _public_key(key: Mapping[str, Any]) -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        raise UnusableCardError(f"verify needs the extra a2a: {install_extra('a2a')}") from None
    try:
        if key.get("kty") != "EC" or key.get("crv") != "P-256":
            raise UnusableCardError("a key of verify is not a public key on the curve P-256 (kty EC, crv P-256)")
        x, y = (int.from_bytes(of_base64url(key[name]), "big") for name in ("x", "y"))
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    except (KeyError, AttributeError, ValueError, UnicodeError) as error:
        if isinstance(error, UnusableCardError):
            raise
        raise UnusableCardError("a key of verify has invalid coordinates") from None


def _key_name(key: Mapping[str, Any]) -> str:
    """The name of a key in pins: its id, or the beginning of its coordinate."""
    key_id = key.get("kid")
    return key_id if isinstance(key_id, str) and _NAMED.fullmatch(key_id) else str(key.get("x"))[:43]


def _fits(key: Any, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - loaded by now
    from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    halves = (int.from_bytes(part, "big") for part in (signature[:_NUMBER_BYTES], signature[_NUMBER_BYTES:]))
    try:
        key.verify(utils.encode_dss_signature(*halves), content, ec.ECDSA(SHA256()))
    except InvalidSignature:
        return False
    return True
