"""Scripts: ``[[sim:script=[…]]]`` has the simulator's answers to the turns of a conversation. Pure.

docs/providers.md describes the items.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from ...protocol.tool_call import Usage

OPENING: Final = "[[sim:script="

FAILURES: Final = frozenset(
    {"status", "code", "retry_after", "hang", "hang_after", "break_after", "error_after", "garbage", "nested", "empty"}
)
"""The settings of an item that make its request fail."""
_SETTINGS: Final = FAILURES | {"stream_delay", "length", "filter", "withhold", "too_long"}
_KEYS: Final = ("text", "reasoning", "calls", "usage", "delay_s", "always", *sorted(_SETTINGS))
_USAGE: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


class ScriptError(ValueError):
    """A script is invalid; the message names the item and the accepted values."""


@dataclass(frozen=True, slots=True)
class ScriptedTurn:
    """The model's answer in one turn. None in a field keeps the value that it has without a script."""

    text: str | None = None
    reasoning: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    """Name, and arguments as JSON text."""
    usage: Usage | None = None


@dataclass(frozen=True, slots=True)
class ScriptItem:
    """One item of a script."""

    turn: ScriptedTurn
    delay_s: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further directives by name, such as ``status``; their values are not checked."""
    always: bool = False
    """Whether the item's request fails each time, not only once."""

    @property
    def fails(self) -> bool:
        return not FAILURES.isdisjoint(self.settings)

    @property
    def repaired(self) -> Mapping[str, Any]:
        """The settings without the failure, for the retry of the request."""
        return {name: value for name, value in self.settings.items() if name not in FAILURES}


def script_end(text: str, start: int) -> int:
    """Returns the end of the JSON that starts at ``start`` and may contain closing brackets; -1 if the JSON is
    invalid.
    """
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return -1


def read_script(value: Any) -> tuple[ScriptItem, ...]:
    """Reads the JSON of a script.

    Raises:
        ScriptError: an item is invalid.
    """
    if not isinstance(value, list):
        raise ScriptError("script must be a JSON list of objects, one per turn")
    return tuple(_read_item(f"item {number}", item) for number, item in enumerate(value))


def _read_item(place: str, item: Any) -> ScriptItem:
    fields = _object(place, item, _KEYS)
    settings = {name: fields[name] for name in _SETTINGS & set(fields)}
    turn = ScriptedTurn(
        text=_typed(place, fields, "text", str),
        reasoning=_typed(place, fields, "reasoning", str),
        calls=tuple(_read_call(f"{place}: calls", call) for call in _typed(place, fields, "calls", list) or ()),
        usage=_read_usage(place, fields.get("usage")),
    )
    delay_s = _typed(place, fields, "delay_s", (int, float)) or 0.0
    return ScriptItem(turn, float(delay_s), settings, _typed(place, fields, "always", bool) or False)


def _read_call(place: str, call: Any) -> tuple[str, str]:
    fields = _object(place, call, ("name", "arguments"))
    name, arguments = _typed(place, fields, "name", str), fields.get("arguments", {})
    if name is None:
        raise ScriptError(f"{place}: name is missing")
    # A text is sent unchanged, so that a script can have arguments that are not JSON.
    return name, arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _read_usage(place: str, usage: Any) -> Usage | None:
    if usage is None:
        return None
    fields = _object(f"{place}: usage", usage, _USAGE)
    counts = {name: _typed(f"{place}: usage", fields, name, int) or 0 for name in _USAGE}
    return msgspec.convert(counts, Usage)


def _object(place: str, value: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ScriptError(f"{place} must be an object with {', '.join(keys)}")
    unknown = [key for key in value if key not in keys]
    if unknown:
        raise ScriptError(f"{place} has the unknown key {unknown[0][:60]!r}; known: {', '.join(keys)}")
    return value


def _typed(place: str, fields: Mapping[str, Any], key: str, kind: type | tuple[type, ...]) -> Any:
    value = fields.get(key)
    if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
        return value
    raise ScriptError(f"{place}: {key} has the wrong type: {json.dumps(value)[:60]}")
