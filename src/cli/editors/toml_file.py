"""TOML, as Codex has it: read, and changed by whole tables. Pure."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Final

from .editor_errors import RefusedFileError

_HEADER: Final = re.compile(r"^[ \t]*\[{1,2}[^\[\]\n]+\]{1,2}[ \t]*(?:#[^\n]*)?$", re.MULTILINE)


def read(text: str) -> Mapping[str, Any]:
    """What the file says.

    Raises:
        RefusedFileError: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:
        place = re.search(r"\(at .*\)$", str(error))  # the rest may quote what stands there
        raise RefusedFileError(f"it is not TOML {place[0] if place else ''}".rstrip() + "; mend it first") from None


def change(text: str, keys: tuple[str, ...], value: Mapping[str, Any] | None) -> str:
    """The text with the table of this path anew at the end, or without it where ``value`` is None. All else stays.

    Raises:
        RefusedFileError: it is no TOML, or has the table in another form than by headers of its own.
    """
    before = read(text)
    kept = _without(text, keys)
    if value is not None:
        separator = "" if not kept or kept.endswith("\n\n") else "\n" if kept.endswith("\n") else "\n\n"
        kept = f"{kept}{separator}{_table(keys, value)}"
    try:
        after = tomllib.loads(kept)
    except ValueError:
        after = None
    if after != _expected(before, keys, value):
        path = ".".join(keys)
        raise RefusedFileError(f"{path} stands in it in another form than as a table [{path}]; change it by hand")
    return kept


def _without(text: str, keys: tuple[str, ...]) -> str:
    """The text without the tables of this path and below it; where they were its end, without the line before them."""
    headers = list(_HEADER.finditer(text))
    parts = [text[: headers[0].start()] if headers else text]
    went = False
    for place, header in enumerate(headers):
        end = headers[place + 1].start() if place + 1 < len(headers) else len(text)
        went = _path(header[0])[: len(keys)] == keys
        if not went:
            parts.append(text[header.start() : end])
    kept = "".join(parts)
    return kept.removesuffix("\n") if went and kept.endswith("\n\n") else kept


def _path(header: str) -> tuple[str, ...]:
    """The keys that a header names; none where this is no header after all, such as a line of a longer text."""
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


def _table(keys: tuple[str, ...], value: Mapping[str, Any]) -> str:
    plain = [f"{key} = {_literal(one)}" for key, one in value.items() if not isinstance(one, dict)]
    lines = [f"[{'.'.join(keys)}]", *plain]
    for key, one in value.items():
        if isinstance(one, dict):
            lines += ["", f"[{'.'.join((*keys, key))}]", *(f"{name} = {_literal(each)}" for name, each in one.items())]
    return "\n".join(lines) + "\n"


def _literal(value: object) -> str:
    """A string or a list of strings: what JSON writes of these, TOML reads."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
