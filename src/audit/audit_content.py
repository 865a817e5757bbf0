"""Reduces a call's arguments for its audit row: to their shape, their redacted content, or nothing."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from ..protocol.tool_call import Json
from .argument_shape import shape
from .redaction import REDACTED, is_secret_name, redact_text

MAX_CONTENT_BYTES: Final = 16 * 1024
"""The maximum size of one call's arguments as JSON. Longer content is cut, with an ellipsis at each cut."""
MAX_MESSAGE_BYTES: Final = 64 * 1024
"""The maximum size of one message of a conversation as JSON, cut in the same way."""
MAX_DEPTH: Final = 16
_OVERLAP: Final = 512
"""The number of characters that are examined beyond a cut, so that a secret across the cut is recognized."""

Policy = Literal["shape", "full", "none"]

_encode = msgspec.json.Encoder().encode


def content_reducer(policy: Policy) -> Callable[[Json], str | None]:
    """Returns the function that reduces arguments to JSON; the store's writer thread calls it."""
    match policy:
        case "shape":
            return _shape_as_json
        case "full":
            return _content_as_json
        case "none":
            return _nothing


def _shape_as_json(arguments: Json) -> str | None:
    return _encode(shape(arguments)).decode()


def _nothing(_: Json) -> str | None:
    return None


def _content_as_json(arguments: Json) -> str | None:
    encoded = _encode(redact(arguments))
    # Because of escapes, the JSON can exceed the limit; a shape always fits.
    return encoded.decode() if len(encoded) <= MAX_CONTENT_BYTES else _shape_as_json(arguments)


def redact(arguments: Json) -> Json:
    """Returns a copy without secrets (by name and by format), cut to about half of ``MAX_CONTENT_BYTES``."""
    return _BoundedCopy(MAX_CONTENT_BYTES // 2).of(arguments, MAX_DEPTH)


def redact_message(content: Json) -> Json:
    """Returns a copy of a message without secrets, of at most ``MAX_MESSAGE_BYTES`` as JSON."""
    budget = MAX_MESSAGE_BYTES
    while True:
        copied = _BoundedCopy(budget).of(content, MAX_DEPTH)
        size = len(_encode(copied))
        if size <= MAX_MESSAGE_BYTES:
            return copied
        # In most scripts, a character takes several bytes, and so does an escape.
        budget = budget * MAX_MESSAGE_BYTES // size - _OVERLAP


class _BoundedCopy:
    """Copies and redacts JSON until its budget of characters is used up."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def of(self, value: Json, depth: int) -> Json:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        self.budget -= 8
        return value if value is None or isinstance(value, bool | int | float) else f"<{type(value).__name__}>"

    def _text(self, text: str) -> str:
        limit = max(self.budget, 0)
        redacted = redact_text(text[: limit + _OVERLAP])
        if len(text) > limit + _OVERLAP or len(redacted) > limit:
            redacted = f"{redacted[:limit]}… [{len(text)} characters]"
        self.budget -= len(redacted) + 2
        return redacted

    def _list(self, items: list[Json] | tuple[Json, ...], depth: int) -> Json:
        copied: list[Json] = []
        for item in items:
            if self.budget <= 0 or depth <= 0:
                copied.append(f"… [{len(items) - len(copied)} more]")
                break
            copied.append(self.of(item, depth - 1))
        return copied

    def _object(self, fields: dict[str, Json], depth: int) -> Json:
        copied: dict[str, Json] = {}
        for name, value in fields.items():
            if self.budget <= 0 or depth <= 0:
                copied["…"] = f"[{len(fields) - len(copied)} more]"
                break
            shown = self._text(str(name))
            copied[shown] = REDACTED if is_secret_name(str(name)) else self.of(value, depth - 1)
        return copied
