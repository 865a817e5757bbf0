"""What a signature of an agent's card signs: the card in canonical JSON (RFC 8785), as JWS (RFC 7515). Pure."""

import base64
import json
from collections.abc import Mapping
from typing import Any


def signed_forms(card: Mapping[str, Any]) -> list[bytes]:
    """The forms of a card's canonical JSON, without repetitions: the one of the specification (section 8.4.1), and the
    one that ``a2a-sdk`` verifies, which omits all empty values, even those with a meaning.

    A card here has no floating-point numbers, and its names are ASCII, so sorted JSON is canonical.
    """
    forms = [_canonical(_without_empty_lists(card)), _canonical(_without_empty(card))]
    return list(dict.fromkeys(forms))


def protected_header(key_id: str, jwks_url: str) -> bytes:
    """The protected header of a signature, in base64url."""
    return base64url(_canonical({"alg": "ES256", "jku": jwks_url, "kid": key_id, "typ": "JOSE"}))


def signing_input(header: bytes, form: bytes) -> bytes:
    """What is signed for a protected header and a form of the card."""
    return header + b"." + base64url(form)


def base64url(data: bytes) -> bytes:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _without_empty_lists(value: Any) -> Any:
    """The value without empty repeated fields. The required ones of a card are never empty."""
    if isinstance(value, dict):
        return {name: _without_empty_lists(each) for name, each in value.items() if each != []}
    return [_without_empty_lists(each) for each in value] if isinstance(value, list) else value


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ("", {}, [])}
    if isinstance(value, list):
        return [each for each in map(_without_empty, value) if each not in ("", {}, [])]
    return value
