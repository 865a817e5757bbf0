"""The signing input for an agent's card: canonical JSON (RFC 8785) as JWS (RFC 7515). Pure."""

import base64
import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

_PLAIN_DIGITS: Final = 21
_PLAIN_ZEROS: Final = 6
"""ECMAScript writes at most this many digits before the point, or zeros after it, without an exponent."""


def signed_forms(card: Mapping[str, Any]) -> list[bytes]:
    """The two forms of a card's canonical JSON, without duplicates: the form of the specification (section 8.4.1), and
    the form that ``a2a-sdk`` verifies, which omits all empty values, even significant ones.

    Raises:
        ValueError: it has a number that is not finite.
    """
    forms = [canonical_json(_without_empty_lists(card)), canonical_json(_without_empty(card))]
    return list(dict.fromkeys(forms))


def protected_header(key_id: str, jwks_url: str) -> bytes:
    """The protected header of a signature, in base64url."""
    return base64url(canonical_json({"alg": "ES256", "jku": jwks_url, "kid": key_id, "typ": "JOSE"}))


def signing_input(header: bytes, form: bytes) -> bytes:
    """The signing input for a protected header and a form of the card."""
    return header + b"." + base64url(form)


def of_base64url(text: str) -> bytes:
    """Decodes base64 for URLs.

    Raises:
        ValueError: the text is not base64 for URLs.
    """
    encoded = text.encode("ascii")
    return base64.b64decode(encoded + b"=" * (-len(encoded) % 4), altchars=b"-_", validate=True)


def base64url(data: bytes) -> bytes:
    """Base64 for URLs, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def canonical_json(value: Any) -> bytes:
    """JSON in the canonical form of RFC 8785.

    Raises:
        ValueError: it has a number that is not finite.
    """
    return _written(value).encode("utf-8", "surrogatepass")


def _written(value: Any) -> str:
    match value:
        case bool() | None:
            return json.dumps(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return _number(value)
        case list():
            return f"[{','.join(map(_written, value))}]"
        case _:
            names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
            return f"{{{','.join(f'{_written(name)}:{_written(value[name])}' for name in names)}}}"


def _number(value: float) -> str:
    """A number as ECMAScript writes it: as a double, with an exponent only if it is very large or small."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a number is not finite")
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)
    minus = "-" if sign else ""
    if len(text) <= point <= _PLAIN_DIGITS:
        return f"{minus}{text}{'0' * (point - len(text))}"
    if 0 < point <= _PLAIN_DIGITS:
        return f"{minus}{text[:point]}.{text[point:]}"
    if -_PLAIN_ZEROS < point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    fraction = f".{text[1:]}" if len(text) > 1 else ""
    return f"{minus}{text[0]}{fraction}e{point - 1:+d}"


def _without_empty_lists(value: Any) -> Any:
    """The value without empty repeated fields. The required fields of a card are never empty."""
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
