"""JSON with comments and trailing commas, as editors take it: read, and changed in one place. Pure."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .editor_errors import RefusedFileError

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
    """One name and value of an object; positions in the text."""

    name: str
    start: int
    value_start: int
    end: int
    object: "_Object | None"


@dataclass(slots=True)
class _Object:
    start: int
    end: int = 0
    """After the closing brace."""
    members: list[_Member] = field(default_factory=list)
    last_comma: int | None = None
    """After the comma behind the last member, where there is one."""

    def member(self, name: str) -> _Member | None:
        return next((member for member in self.members if member.name == name), None)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def read(text: str) -> Mapping[str, Any]:
    """What the file says; nothing at all is an empty object.

    Raises:
        RefusedFileError: it is no JSON, or no object.
    """
    bare: list[str] = []
    for token in _tokens(text):
        if token.text in {"}", "]"} and bare and bare[-1] == ",":
            bare.pop()
        bare.append(token.text)
    if not bare:
        return {}
    try:
        value = json.loads(" ".join(bare), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError) as error:
        raise RefusedFileError(f"it is not JSON ({_reason(error)}); mend it first") from None
    if not isinstance(value, dict):
        raise RefusedFileError("it is JSON, but no object; mend it first")
    return value


def change(text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
    """The text with ``value`` at the path; where it is None, without what is there and the objects that are empty then.
    All else stays, to the byte.

    Raises:
        RefusedFileError: it is no JSON, or something else than an object is on the way.
    """
    read(text)
    if not any(True for _ in _tokens(text)):
        if value is None:
            return text
        text = f"{text.rstrip()}\n{{}}\n".lstrip()
    parsed = _parse(text)
    for depth, key in enumerate(keys[:-1]):
        member = parsed.member(key)
        if member is None:
            if value is None:
                return text
            for missing in reversed(keys[depth + 1 :]):
                value = {missing: value}
            return _insert(text, parsed, key, value)
        if member.object is None:
            raise RefusedFileError(f"{key!r} in it is no object; mend it first")
        parsed = member.object
    member = parsed.member(keys[-1])
    if value is None:
        return text if member is None else _remove_up(text, keys, parsed, member)
    if member is None:
        return _insert(text, parsed, keys[-1], value)
    return text[: member.value_start] + _written(value, _indent_at(text, member.start)) + text[member.end :]


def _insert(text: str, into: _Object, name: str, value: Mapping[str, Any]) -> str:
    """A member at the object's end, on a line of its own, indented as the ones before it."""
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
    """Past a comment that stands behind a member on its line."""
    found = _REMARK.match(text, position)
    return found.end() if found else position


def _remove_up(text: str, keys: tuple[str, ...], of: _Object, member: _Member) -> str:
    """The text without the member at the path, and without what it stood in where that is empty now."""
    kept = _remove(text, of, member)
    left = kept[of.start + 1 : of.end - 1 - (len(text) - len(kept))]
    return kept if left.strip() or len(keys) == 1 else change(kept, keys[:-1], None)


def _remove(text: str, of: _Object, member: _Member) -> str:
    """The member with its line, and with the comma that parted it from its neighbour."""
    place = of.members.index(member)
    after = of.members[place + 1].start if place + 1 < len(of.members) else of.last_comma
    comma = text.find(",", member.end) + 1 if after is not None else member.end
    if after is None and place > 0:  # the comma before it goes, and what stands behind that comma stays
        before = of.members[place - 1].end
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
    """What counts of the text, from ``start`` on."""
    while start < len(text):
        found = _TOKEN.match(text, start)
        if found is None:
            line = text.count("\n", 0, start) + 1
            raise RefusedFileError(f"it is not JSON (line {line}); mend it first")
        if found.lastgroup != "blank":
            yield _Token(str(found.lastgroup), found[0], start, found.end())
        start = found.end()


def _parse(text: str) -> _Object:
    """The positions of an object that ``read`` takes."""
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
    raise RefusedFileError("it is not JSON; mend it first")


def _array(tokens: Iterator[_Token]) -> int:
    depth = 1
    for token in tokens:
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.text, 0) if token.kind == "mark" else 0
        if not depth:
            return token.end
    raise RefusedFileError("it is not JSON; mend it first")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice in an object")
    return found


def _reason(error: Exception) -> str:
    return str(error).partition(":")[0] if isinstance(error, ValueError) else "it is nested too deeply"
