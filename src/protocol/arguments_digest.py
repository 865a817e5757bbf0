"""The digest of a call's arguments. A repeated request id with an equal digest is the same call. Pure.

The digest is computed from the arguments' canonical JSON, so the order of keys, spaces and escapes do not matter. Long
texts are not escaped for this: each is hashed once and replaced by its hash. Digests of arguments without long texts
are the same as in earlier versions; earlier digests of arguments with long texts are recognised.
"""

import hashlib
from typing import Any, Final

import msgspec
from blake3 import blake3

DIGEST_BYTES: Final = 16
LONG_TEXT_CHARS: Final = 4096
"""Longer texts are hashed separately."""
_MAX_LEVELS: Final = 4
"""The number of levels at which long texts are searched."""
_MAX_ITEMS: Final = 256
"""Longer objects and arrays are not searched, because reading all values takes longer than encoding them."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


def arguments_digest(arguments: dict[str, Any]) -> bytes:
    """Returns the digest of a call's arguments, of ``DIGEST_BYTES``.

    Raises:
        UnicodeEncodeError: a text has half of a surrogate pair.
    """
    return _hash(_canonical(_with_hashed_texts(arguments, _MAX_LEVELS)))


def whole_digest(arguments: dict[str, Any]) -> bytes:
    """Returns the digest of the canonical JSON with all texts, as it was stored before long texts were hashed."""
    return _hash(_canonical(arguments))


def is_digest_of(stored: bytes, arguments: dict[str, Any], digest: bytes | None = None) -> bool:
    """Whether ``stored`` is the digest of these arguments. Pass ``digest`` if their digest is known already."""
    if stored == (arguments_digest(arguments) if digest is None else digest):
        return True
    hashed = _with_hashed_texts(arguments, _MAX_LEVELS)
    return hashed is not arguments and stored == whole_digest(arguments)


def same_arguments(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether both have the same canonical JSON. Values that are equal in Python, such as 1 and 1.0, may differ."""
    return _canonical(one) == _canonical(other)


def _hash(canonical: bytes) -> bytes:
    return hashlib.blake2b(canonical, digest_size=DIGEST_BYTES).digest()


def _with_hashed_texts(value: Any, levels: int) -> Any:
    """The value with its long texts replaced by hashes; the same object if it has none. A hash is not JSON, so no other
    value has the same canonical form.
    """
    if isinstance(value, str):
        if len(value) <= LONG_TEXT_CHARS:
            return value
        utf8 = msgspec.Raw(value) if value.isascii() else value.encode()  # `Raw` does not copy an ASCII text
        return msgspec.Raw(f"#{blake3(utf8).hexdigest()}")
    if levels == 0 or not isinstance(value, dict | list) or len(value) > _MAX_ITEMS:
        return value
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    hashed = {key: new for key, part in parts if (new := _with_hashed_texts(part, levels - 1)) is not part}
    if not hashed:
        return value
    if isinstance(value, dict):
        return {**value, **hashed}
    return [hashed.get(index, part) for index, part in enumerate(value)]
