"""Parses and edits TOML, the format of ``toold.toml`` and of Codex's file, by whole tables and top-level keys. Pure."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .server_entry import RefusedFileError

_HEADER: Final = re.compile(r"^[ \t]*\[{1,2}[^\[\]\n]+\]{1,2}[ \t]*(?:#[^\n]*)?$", re.MULTILINE)


def parse(text: str) -> Mapping[str, Any]:
    """Parse the file.

    Raises:
        RefusedFileError: the text is not TOML.
    """
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        place = re.search(r"\(at .*\)$", str(error))  # the rest may quote the file
        raise RefusedFileError(f"it is not TOML {place[0] if place else ''}".rstrip() + "; fix it first") from None


def change(text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
    """The text with the table of this path replaced at the end, or removed if ``value`` is None. All else stays.

    Raises:
        RefusedFileError: the text is not TOML, or has the table in a form other than ``[path]`` headers.
    """
    before = parse(text)
    remaining = _without(text, keys)
    if value is not None:
        separator = "" if not remaining or remaining.endswith("\n\n") else "\n" if remaining.endswith("\n") else "\n\n"
        remaining = f"{remaining}{separator}{_table(keys, value)}"
    try:
        after = tomllib.loads(remaining)
    except ValueError:
        after = None
    if after != _expected(before, keys, value):
        path = ".".join(keys)
        raise RefusedFileError(f"{path} in it is not written as a table [{path}]; edit it by hand")
    return remaining


def _without(text: str, keys: tuple[str, ...]) -> str:
    """The text without the table of this path and its subtables, and without the blank line before them at the end."""
    headers = list(_HEADER.finditer(text))
    parts = [text[: headers[0].start()] if headers else text]
    removed = False
    for index, header in enumerate(headers):
        end = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        removed = _path(header[0])[: len(keys)] == keys
        if not removed:
            parts.append(text[header.start() : end])
    remaining = "".join(parts)
    return remaining.removesuffix("\n") if removed and remaining.endswith("\n\n") else remaining


def _path(header: str) -> tuple[str, ...]:
    """The keys in a header; empty if the line is not a header, for example inside a multi-line string."""
    try:
        table: Any = tomllib.loads(header)
    except ValueError:
        return ()
    path = []
    while isinstance(table, dict) and table:
        ((key, table),) = table.items()
        path.append(key)
    return tuple(path)


def _expected(before: Mapping[str, Any], keys: tuple[str, ...], value: Mapping[str, Any] | None) -> dict[str, Any]:
    first, *rest = keys
    after = dict(before)
    if rest:
        inner = before.get(first, {})
        below = _expected(inner if isinstance(inner, dict) else {}, tuple(rest), value)
        if below or (isinstance(inner, dict) and value is None and set(inner) - {rest[0]}):
            after[first] = below
        else:
            after.pop(first, None)
    elif value is None:
        after.pop(first, None)
    else:
        after[first] = dict(value)
    return after


def set_key(text: str, name: str, value: object) -> str:
    """The text with ``name = value`` before the first table: in place of the key, otherwise below the line in which it
    is commented out, otherwise at the end of the keys. The rest stays unchanged.

    Raises:
        RefusedFileError: the text is not TOML, or has the key in a form that cannot be replaced.
    """
    expected = {**parse(text), name: value}
    line = f"{name} = {toml_literal(value)}\n"
    lines = text.splitlines(keepends=True)
    end = next((index for index, part in enumerate(lines) if _HEADER.match(part.rstrip("\r\n"))), len(lines))
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for candidate in _placements(lines, name, line, end):
        try:
            if tomllib.loads(candidate) == expected:
                return candidate
        except ValueError:
            continue
    raise RefusedFileError(f"{name} in it cannot be changed; edit it by hand")


def _placements(lines: list[str], name: str, line: str, end: int) -> Iterator[str]:
    """The texts to try, because the value of a key may span lines, and a line may be part of a multi-line string."""
    for index in range(end):
        if re.match(rf"{re.escape(name)}[ \t]*=", lines[index]):
            for last in range(index + 1, end + 1):
                yield "".join([*lines[:index], line, *lines[last:]])
    for index in range(end):
        if re.match(rf"#[ \t]*{re.escape(name)}[ \t]*=", lines[index]):
            yield "".join([*lines[: index + 1], line, *lines[index + 1 :]])
    while end and not lines[end - 1].strip():
        end -= 1
    # Below the keys there may be a comment of the first table: a blank line separates them.
    gap = ["\n"] if end < len(lines) else []
    yield "".join([*lines[:end], line, *gap, *lines[end:]])
    yield "".join([line, *gap, *lines])


def _table(keys: tuple[str, ...], value: Mapping[str, Any]) -> str:
    plain = [f"{key} = {toml_literal(one)}" for key, one in value.items() if not isinstance(one, dict)]
    lines = [f"[{'.'.join(keys)}]", *plain]
    for key, one in value.items():
        if isinstance(one, dict):
            members = (f"{_key(name)} = {toml_literal(each)}" for name, each in one.items())
            lines += ["", f"[{'.'.join((*keys, key))}]", *members]
    return "\n".join(lines) + "\n"


def toml_literal(value: object) -> str:
    """A string, a number, a boolean, a list or a table as TOML on one line."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {toml_literal(one)}" for name, one in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_literal, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # also valid TOML


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_literal(name)
