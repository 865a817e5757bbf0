"""How the tables of old calls are written: one row per argument and value, made from a tool's required arguments."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

PUBLISHED = tomllib.loads((Path(__file__).parent / "published_arguments.toml").read_text(encoding="utf-8"))
"""Server → tool → the names of its arguments."""
_LABEL_CHARS = 32


class OldCall(NamedTuple):
    """A call as clients of a predecessor send it, and what comes of it.

    ``{workspace}``, ``{conversation}`` and ``{file_id}`` in texts stand for values that exist only during the test.
    """

    name: str
    """``SERVER TOOL ARGUMENT``; unique."""
    tool: str
    arguments: dict[str, Any]
    noticed: tuple[str, ...] = ()
    """The arguments that the answer's notices name."""
    refused: str = ""
    """The error code of a refusal. docs/migrating.md has a row with the same name."""


class Noticed(NamedTuple):
    """A value that works; the answer says what became of it."""

    value: Any


class Refused(NamedTuple):
    """A value that is refused on purpose."""

    value: Any
    code: str


class Each(NamedTuple):
    """Several values; each gets its own row, with the name ``ARGUMENT=VALUE`` or, if the value is long, its number."""

    values: Sequence[Any]


def old_call(name: str, tool: str, values: dict[str, Any], *noticed: str) -> OldCall:
    """One row; ``noticed`` has further arguments that notices name."""
    arguments = {argument: _value(value) for argument, value in values.items()}
    named = tuple(argument for argument, value in values.items() if isinstance(value, Noticed))
    refused = next((value.code for value in values.values() if isinstance(value, Refused)), "")
    return OldCall(name, tool, arguments, (*named, *noticed), refused)


def old_calls(server: str, tool: str, base: dict[str, Any] | None = None, **arguments: Any) -> tuple[OldCall, ...]:
    """The call with the base arguments alone, and one call per further argument and value."""
    base = base or {}
    rows = [old_call(f"{server} {tool}", tool, base)]
    for argument, value in arguments.items():
        for label, each in _values(argument, value):
            rows.append(old_call(f"{server} {tool} {label}", tool, base | {argument: each}))
    return tuple(rows)


def _values(argument: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Each):
        for number, each in enumerate(value.values, 1):
            text = json.dumps(_value(each))
            yield (f"{argument}={text}" if len(text) <= _LABEL_CHARS else f"{argument} #{number}"), each
    else:
        yield argument, value


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Noticed | Refused) else value


def filled(value: Any, places: dict[str, str]) -> Any:
    """The value with each place, such as ``{workspace}``, filled in."""
    if isinstance(value, str):
        for place, text in places.items():
            value = value.replace(f"{{{place}}}", text)
        return value
    if isinstance(value, list):
        return [filled(item, places) for item in value]
    if isinstance(value, dict):
        return {name: filled(item, places) for name, item in value.items()}
    return value
