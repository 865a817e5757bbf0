"""What the audit keeps of a call's arguments: their shape, their content, or nothing."""

from collections.abc import Callable
from typing import Final, Literal

import msgspec

from ..protocol.tool_call import Json
from .argument_shape import shape
from .redaction import REDACTED, is_secret_name, redact_text

MAX_CONTENT_BYTES: Final = 16 * 1024
"""Of the JSON that is kept of one call's arguments; what is longer is cut, where it is cut an ellipsis stands."""
MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Of the JSON of one message of a conversation, cut in the same way."""
MAX_DEPTH: Final = 16
_OVERLAP: Final = 512
"""Characters read beyond a cut, so that a secret that lies across it is still recognised."""

Policy = Literal["shape", "full", "none"]

_encode = msgspec.json.Encoder().encode


def content_kept(policy: Policy) -> Callable[[Json], str | None]:
    """A function from arguments to what is kept of them, as JSON; for the store's writer thread."""
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
    # Escapes can make the JSON of odd text longer than its characters; its shape always fits.
    return encoded.decode() if len(encoded) <= MAX_CONTENT_BYTES else _shape_as_json(arguments)


def redact(arguments: Json) -> Json:
    """A copy without secrets (by name and by look), cut to about half of ``MAX_CONTENT_BYTES``."""
    return _Copy(MAX_CONTENT_BYTES // 2).of(arguments, MAX_DEPTH)


def redact_message(content: Json) -> Json:
    """A copy of a message without secrets, of at most ``MAX_MESSAGE_BYTES`` as JSON."""
    budget = MAX_MESSAGE_BYTES
    while True:
        copied = _Copy(budget).of(content, MAX_DEPTH)
        size = len(_encode(copied))
        if size <= MAX_MESSAGE_BYTES:
            return copied
        # Of most scripts a character takes several bytes, and so does an escape.
        budget = budget * MAX_MESSAGE_BYTES // size - _OVERLAP


class _Copy:
    """Copies JSON until its budget of characters is spent."""

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
        room = max(self.budget, 0)
        kept = redact_text(text[: room + _OVERLAP])
        if len(text) > room + _OVERLAP or len(kept) > room:
            kept = f"{kept[:room]}… [{len(text)} characters]"
        self.budget -= len(kept) + 2
        return kept

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
            kept = self._text(str(name))
            copied[kept] = REDACTED if is_secret_name(str(name)) else self.of(value, depth - 1)
        return copied
