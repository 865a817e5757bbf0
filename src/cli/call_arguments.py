"""Converts ``key=value`` words to a tool's arguments by the tool's schema. Pure, except that ``@file`` reads a file."""

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from ..protocol.name_suggestions import close_names, did_you_mean
from .argument_schema import Schema, choices, items_of, takes_text, types_of, written

_ARTICLES: Final = {"null": "null", "integer": "an integer", "array": "an array", "object": "an object"}


@dataclass(frozen=True, slots=True)
class ArgumentWord:
    """One parsed argument of the command line: ``key=text``, or ``key:=json`` with ``is_json``."""

    key: str
    text: str
    is_json: bool


def parse_word(word: str) -> ArgumentWord:
    """Split a word at its first ``=``; ``=@file`` and ``:=@file`` read the file, ``@-`` standard input.

    Raises:
        click.UsageError: no ``=``, no key, or a file or text that is not UTF-8.
    """
    key, equals, text = word.partition("=")
    is_json = key.endswith(":")
    key = key.removesuffix(":")
    if not equals or not key:
        raise click.UsageError(f"{word!r} is not an argument; write key=value, key:=json or key=@file")
    if text.startswith("@"):
        text = _read(key, text[1:])
    _require_utf8(key, text)
    return ArgumentWord(key, text, is_json)


def _require_utf8(key: str, text: str) -> None:
    """Refuse bytes that the locale cannot decode: they arrive as lone surrogates, which no frame can carry."""
    try:
        (key + text).encode()
    except UnicodeEncodeError:
        hint = "set a UTF-8 locale, such as LC_ALL=C.UTF-8, or pass the text in a file"
        raise click.UsageError(f"argument {key!a} is not UTF-8 text; {hint}: key=@file") from None


def _read(key: str, source: str) -> str:
    try:
        return sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except OSError as exc:
        reason = exc.strerror or exc
    except UnicodeDecodeError:
        reason = "it is not UTF-8 text"
    raise click.UsageError(
        f"{key}=@{source}: cannot read the file: {reason}; for text that starts with @ write {key}:='\"@…\"'"
    )


def bind(tool: str, schema: Schema, words: Sequence[ArgumentWord]) -> dict[str, Any]:
    """The arguments that the words give for this schema. A repeated key makes an array.

    If the schema is closed, a key that it does not list is sent unchanged: the daemon accepts former arguments, and
    explains what is wrong with other keys. The daemon then also decides whether an argument is missing.

    Raises:
        click.UsageError: a missing argument, a value of the wrong type, a repeated key that takes one value, or an
            unlisted key of an open schema that resembles a listed one; the message names the argument.
    """
    words_by_name: dict[str, list[ArgumentWord]] = {}
    for word in words:
        words_by_name.setdefault(word.key, []).append(word)
    properties: Mapping[str, Schema] = schema.get("properties", {})
    arguments: dict[str, Any] = {}
    unlisted = False
    for key, repeated in words_by_name.items():
        part = _property(tool, schema, properties, key)
        unlisted |= part is None
        arguments[key] = _as_written(repeated) if part is None else _value(key, repeated, part, schema)
    if unlisted:
        return arguments
    missing = [key for key in schema.get("required", ()) if key not in arguments]
    if missing:
        wanted = " ".join(f"{key}=…" for key in missing)
        raise click.UsageError(f"{tool!r} needs {wanted}; `toold tools {tool}` shows its arguments")
    return arguments


def _property(tool: str, schema: Schema, properties: Mapping[str, Schema], key: str) -> Schema | None:
    """The schema of an argument; None if the tool's schema is closed and does not list it."""
    if key in properties:
        return properties[key]
    others = schema.get("additionalProperties", not properties)
    if others is False:
        return None
    if meant := did_you_mean(close_names(key, properties, n=1)):
        raise click.UsageError(f"{tool!r} has no argument {key!r}; {meant}")
    return others if isinstance(others, Mapping) else {}


def _as_written(words: Sequence[ArgumentWord]) -> Any:
    """The value, or an array of the values, as text unless they are JSON."""
    values = [_parse_json(word) if word.is_json else word.text for word in words]
    return values if len(values) > 1 else values[0]


def _value(key: str, words: list[ArgumentWord], part: Schema, root: Schema) -> Any:
    if len(words) == 1:
        return _parse_json(words[0]) if words[0].is_json else coerce(key, words[0].text, part, root)
    if "array" not in types_of(part, root):
        raise click.UsageError(f"argument {key!r} is given {len(words)} times but takes one value")
    items = items_of(part, root)
    return [_parse_json(word) if word.is_json else coerce(key, word.text, items, root) for word in words]


def _parse_json(word: ArgumentWord) -> Any:
    try:
        return _strict_json(word.text)
    except ValueError as exc:
        raise click.UsageError(f"argument {word.key!r} is not JSON: {exc}; for plain text write {word.key}=…") from exc


def coerce(key: str, text: str, part: Schema, root: Schema) -> Any:
    """The value that the text gives for a subschema. If a string is accepted, text stays text.

    Raises:
        click.UsageError: the text parses as none of the accepted types.
    """
    values = choices(part, root)
    if values:
        return _chosen(key, text, values)
    types = types_of(part, root)
    if types == {"string"} or takes_text(part, root, text):
        return text
    for name, read in _SCALAR_READERS.items():
        if name in types:
            with suppress(ValueError):
                return read(text)
    if "array" in types:
        return _array(key, text, items_of(part, root), root)
    if "object" in types:
        value = _loads(text)
        if isinstance(value, dict):
            return value
    wanted = " or ".join(_ARTICLES.get(name, f"a {name}") for name in sorted(types))
    raise click.UsageError(f"argument {key!r} must be {wanted}, not {text!r}")


def _chosen(key: str, text: str, values: Sequence[Any]) -> Any:
    for value in values:
        if text == written(value) or (isinstance(value, bool) and text.lower() == written(value)):
            return value
    words = [written(value) for value in values]
    meant = did_you_mean(close_names(text, words, n=1))
    hint = f"; {meant}" if meant else ""
    raise click.UsageError(f"argument {key!r} must be {' or '.join(words)}, not {text!r}{hint}")


def _array(key: str, text: str, items: Schema, root: Schema) -> list[Any]:
    """A JSON array, or an array of the text as its one element."""
    value = _loads(text)
    if isinstance(value, list):
        only_strings = types_of(items, root) == {"string"}
        if not only_strings or all(isinstance(item, str) for item in value):
            return value
    return [coerce(key, text, items, root)]


def _loads(text: str) -> Any:
    try:
        return _strict_json(text)
    except ValueError:
        return None


def _strict_json(text: str) -> Any:
    """Parse standard JSON: Python's parser would also accept NaN and Infinity."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc


def _read_null(text: str) -> None:
    if text != "null":
        raise ValueError(text)


def _read_boolean(text: str) -> bool:
    word = text.lower()
    if word not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[word]


def _read_integer(text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text.strip()):  # int() would also accept 1_000 and non-ASCII digits
        raise ValueError(text)
    return int(text)


def _read_number(text: str) -> float:
    value = _strict_json(text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(text)  # noqa: TRY004 - every reader raises ValueError
    return value


_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on", "1"), True) | dict.fromkeys(("false", "no", "off", "0"), False)
_SCALAR_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "null": _read_null,
    "integer": _read_integer,
    "number": _read_number,
    "boolean": _read_boolean,
}
"""The readers, in the order in which they are tried if the schema accepts no string."""
