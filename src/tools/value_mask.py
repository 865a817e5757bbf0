"""Masks bound values in errors, log lines and results (decision 38). Pure.

A value may come back encoded, so its forms in JSON and in URLs are masked too.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus

import msgspec

from ..protocol.error_codes import ToolError
from ..protocol.tool_call import ContentBlock, Json, TextContent, ToolResult

MASKED: Final = "[bound]"
MIN_CHARS: Final = 4
"""Shorter values also occur in other text, so they are masked only if they are a whole value."""

_AS_IN_BROWSERS: Final = "!'()*"
"""The characters that ``encodeURIComponent`` does not encode."""
_CUT_CHARS: Final = 8
"""A text truncated within a value ends with the value's first characters; they are masked if there are at least this
many."""


class ValueMask:
    """Masks values: ``secrets`` everywhere, and ``plain`` values everywhere in errors and log lines. Results mask
    ``plain`` values only as a whole value, since the configuration may have a common text, such as a date.
    """

    def __init__(self, secrets: Iterable[Json], plain: Iterable[Json] = ()) -> None:
        self._values = tuple(secrets), tuple(plain)
        hidden, known = set(_texts(list(self._values[0]))), set(_texts(list(self._values[1])))
        self._whole = hidden | known
        self._secret = _pattern(hidden)
        self._any = _pattern(hidden | known)
        self._starts = tuple(text for text in hidden | known if len(text) >= _CUT_CHARS)

    def __repr__(self) -> str:
        return f"<ValueMask of {len(self._whole)}>"

    def with_secret(self, secret: str) -> "ValueMask":
        """A mask that hides one more secret."""
        secrets, plain = self._values
        return ValueMask((*secrets, secret), plain)

    def text(self, text: str) -> str:
        """The text of an error or a log line, masked."""
        return self._replaced(self._any, text)

    def value(self, value: Any) -> Any:
        """The details of an error or the data of a log line, masked."""
        return self._walk(value, self._any)

    def error(self, error: ToolError) -> ToolError:
        """The error, masked."""
        details = error.details if error.details is None else self.value(error.details)
        return msgspec.structs.replace(error, message=self.text(error.message), details=details)

    def result(self, result: ToolResult) -> ToolResult:
        """The result, masked."""
        structured = result.structured
        return msgspec.structs.replace(
            result,
            outputs=tuple(map(self._block, result.outputs)),
            structured=structured if structured is msgspec.UNSET else self._walk(structured, self._secret),
            error=None if result.error is None else self.error(result.error),
            meta=result.meta if result.meta is msgspec.UNSET else self._walk(result.meta, self._secret),
        )

    def _block(self, block: ContentBlock) -> ContentBlock:
        if isinstance(block, TextContent) and block.annotations is None and block.meta is None:
            return TextContent(self._output(block.text))
        return msgspec.convert(self._walk(msgspec.to_builtins(block), self._secret), type(block))

    def _output(self, text: str) -> str:
        text = self._replaced(self._secret, text)
        for whole in self._whole:
            for form in {json.dumps(whole), json.dumps(whole, ensure_ascii=False)}:
                text = text.replace(form, f'"{MASKED}"')
        return MASKED if text in self._whole else text

    def _walk(self, value: Any, pattern: re.Pattern[str] | None) -> Any:
        match value:
            case str():
                return MASKED if value in self._whole else self._replaced(pattern, value)
            case dict():
                return {self._key(key, pattern): self._walk(part, pattern) for key, part in value.items()}
            case list() | tuple():
                return [self._walk(part, pattern) for part in value]
            case bool() | None:
                return value
            case int() | float() if len(str(value)) >= MIN_CHARS and str(value) in self._whole:
                return MASKED
            case _:
                return value

    def _key(self, key: Any, pattern: re.Pattern[str] | None) -> Any:
        return self._replaced(pattern, key) if isinstance(key, str) else key

    def _replaced(self, pattern: re.Pattern[str] | None, text: str) -> str:
        if pattern is None:
            return text
        text = pattern.sub(MASKED, text)
        return self._without_beginnings(text) if pattern is self._any or self._secret is self._any else text

    def _without_beginnings(self, text: str) -> str:
        """Masks the first characters of a value if the text was truncated within it: at its end, and before a ``…``."""
        return "…".join(map(self._without_beginning, text.split("…"))) if self._starts else text

    def _without_beginning(self, text: str) -> str:
        body = text.rstrip(".")
        for value in self._starts:
            for length in range(min(len(value), len(body)), _CUT_CHARS - 1, -1):
                if body.endswith(value[:length]):
                    return body[:-length] + MASKED + text[len(body) :]
        return text


def _texts(values: list[Json]) -> Iterator[str]:
    """All values as texts; true, false and null are never masked."""
    while values:
        match values.pop():
            case str() as text if text:
                yield text
            case dict() as table:
                values.extend(table.values())
            case list() as items:
                values.extend(items)
            case bool() | None:
                pass
            case int() | float() as number:
                yield str(number)


def _pattern(texts: set[str]) -> re.Pattern[str] | None:
    forms = {form for text in texts if len(text) >= MIN_CHARS for form in _forms(text)}
    if not forms:
        return None
    return re.compile("|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True)))


def _forms(text: str) -> set[str]:
    in_json = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    in_addresses = {quote(text, safe=""), quote(text), quote(text, safe=_AS_IN_BROWSERS), quote_plus(text)}
    return {
        text,
        repr(text)[1:-1],
        *in_json,
        *(form.replace("/", "\\/") for form in in_json),
        *in_addresses,
        *(re.sub("%..", lambda code: code[0].lower(), form) for form in in_addresses),
    }
