"""Parses and edits JSON with comments and trailing commas, the format of editors' configuration files. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .server_entry import RefusedFileError

_TOKEN: Final = re.compile(
    r"""(?P<blank>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")"""
    r"""|(?P<mark>[{}\[\]:,])"""
    r"""|(?P<word>-?[\w.+-]+)""",
    re.DOTALL,
)
_REMARK: Final = re.compile(r"[ \t]*//[^\n]*(?=\n)")
_INDENT: Final = "  "


@dataclass(slots=True)
class _Member:
    """A name and value of an object, as positions in the text."""

    name: str
    start: int
    value_start: int
    end: int
    object: "_Object | None"


@dataclass(slots=True)
class _Object:
    start: int
    end: int = 0
    """The position after the closing brace."""
    members: list[_Member] = field(default_factory=list)
    last_comma: int | None = None
    """The position after a trailing comma."""

    def member(self, name: str) -> _Member | None:
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse(text: str) -> Mapping[str, Any]:
    """Parse the file; an empty file is an empty object.

    Raises:
        RefusedFileError: the text is not JSON, or not an object.
    """
    bare: list[str] = []
    for token in _tokens(text):
        if token.text in {"}", "]"} and bare and bare[-1] == ",":
            bare.pop()
        bare.append(token.text)
    if not bare:
        return {}
    try:
        value = json.loads(" ".join(bare), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise RefusedFileError(f"it is not JSON ({_reason(error)}); fix it first") from None
    if not isinstance(value, dict):
        raise RefusedFileError("it is JSON but not an object; fix it first")
    return value


def change(text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
    """The text with ``value`` at the path. None removes the entry and objects left empty. Other bytes stay.

    Raises:
        RefusedFileError: the text is not JSON, or the path leads through a value that is not an object.
    """
    parse(text)
    if not any(True for _ in _tokens(text)):
        if value is None:
            return text
        text = f"{text.rstrip()}\n{{}}\n".lstrip()
    parsed = _parse_positions(text)
    for depth, key in enumerate(keys[:-1]):
        member = parsed.member(key)
        if member is None:
            if value is None:
                return text
            for missing in reversed(keys[depth + 1 :]):
                value = {missing: value}
            return _insert(text, parsed, key, value)
        if member.object is None:
            raise RefusedFileError(f"{key!r} in it is not an object; fix it first")
        parsed = member.object
    member = parsed.member(keys[-1])
    if value is None:
        return text if member is None else _remove_up(text, keys, parsed, member)
    if member is None:
        return _insert(text, parsed, keys[-1], value)
    return text[: member.value_start] + _written(value, _indent_at(text, member.start)) + text[member.end :]


def _insert(text: str, into: _Object, name: str, value: Mapping[str, Any]) -> str:
    """Add a member at the end of the object, on a separate line, indented like its neighbours."""
    if not into.members:
        outer = _indent_at(text, into.start)
        inner = outer + _INDENT
        kept = text[into.start + 1 : into.end - 1].rstrip()
        written = f"{kept}\n{inner}{json.dumps(name)}: {_written(value, inner)}\n{outer}"
        return text[: into.start + 1] + written + text[into.end - 1 :]
    last = into.members[-1]
    inner = _indent_at(text, last.start)
    written = f"\n{inner}{json.dumps(name)}: {_written(value, inner)}"
    if into.last_comma is not None:
        after = _end_of_line(text, into.last_comma)
        return text[:after] + written + "," + text[after:]
    after = _end_of_line(text, last.end)
    return text[: last.end] + "," + text[last.end : after] + written + text[after:]


def _end_of_line(text: str, position: int) -> int:
    """The position after a comment that follows a member on its line."""
    found = _REMARK.match(text, position)
    return found.end() if found else position


def _remove_up(text: str, keys: tuple[str, ...], of: _Object, member: _Member) -> str:
    """The text without the member at the path, and without its parent object if that becomes empty."""
    remaining = _remove(text, of, member)
    body = remaining[of.start + 1 : of.end - 1 - (len(text) - len(remaining))]
    return remaining if body.strip() or len(keys) == 1 else change(remaining, keys[:-1], None)


def _remove(text: str, of: _Object, member: _Member) -> str:
    """Remove the member with its line and the comma that separates it from its neighbour."""
    index = of.members.index(member)
    after = of.members[index + 1].start if index + 1 < len(of.members) else of.last_comma
    comma = text.find(",", member.end) + 1 if after is not None else member.end
    if after is None and index > 0:  # remove the comma before it; text after that comma stays
        before = of.members[index - 1].end
        at = next(token.start for token in _tokens(text[: member.start], before) if token.text == ",")
        text = text[:at] + text[at + 1 :]
        start, comma = member.start - 1, member.end - 1
    else:
        start = member.start
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip() and text[comma : comma + 1] in {"\n", "\r", ""}:
        start = max(line - 1, 0)
    return text[:start] + text[comma:]


def _written(value: Mapping[str, Any], indent: str) -> str:
    return json.dumps(value, indent=_INDENT, ensure_ascii=False).replace("\n", f"\n{indent}")


def _indent_at(text: str, position: int) -> str:
    line = text.rfind("\n", 0, position) + 1
    found = re.match(r"[ \t]*", text[line:position])
    return found[0] if found else ""


def _tokens(text: str, start: int = 0) -> Iterator[_Token]:
    """The tokens from ``start`` on, without blanks and comments."""
    while start < len(text):
        found = _TOKEN.match(text, start)
        if found is None:
            line = text.count("\n", 0, start) + 1
            raise RefusedFileError(f"it is not JSON (line {line}); fix it first")
        if found.lastgroup != "blank":
            yield _Token(str(found.lastgroup), found[0], start, found.end())
        start = found.end()


def _parse_positions(text: str) -> _Object:
    """The positions in a text that ``parse`` accepts."""
    tokens = iter(list(_tokens(text)))
    return _object(tokens, next(tokens))


def _object(tokens: Iterator[_Token], opening: _Token) -> _Object:
    found = _Object(opening.start)
    for token in tokens:
        if token.text == "}":
            found.end = token.end
            return found
        if token.text == ",":
            found.last_comma = token.end
            continue
        next(tokens)  # the colon
        value = next(tokens)
        inner = _object(tokens, value) if value.text == "{" else None
        end = inner.end if inner else _array(tokens) if value.text == "[" else value.end
        found.members.append(_Member(json.loads(token.text), token.start, value.start, end, inner))
        found.last_comma = None
    raise RefusedFileError("it is not JSON; fix it first")


def _array(tokens: Iterator[_Token]) -> int:
    depth = 1
    for token in tokens:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.text, 0) if token.kind == "mark" else 0
        if not depth:
            return token.end
    raise RefusedFileError("it is not JSON; fix it first")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a duplicate name")
    return found


def _reason(error: Exception) -> str:
    return str(error).partition(":")[0] if isinstance(error, ValueError) else "it is nested too deeply"
