"""Directives to the simulator: ``[[sim:…]]`` in the last user message, or a script for the conversation. Pure.

A directive may have several settings, such as ``[[sim:status=429 retry_after=2]]``; docs/providers.md lists them.
Directives in attached files are ignored, so a page about the simulator can be attached.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import NoneType
from typing import Any, Final, get_args

from ...protocol.json_text import parse_json
from . import simulator_script
from .simulator_script import ScriptedTurn, ScriptError, ScriptItem, read_script

_OPENING: Final = "[[sim:"
_CLOSING: Final = "]]"
_SETTING: Final = re.compile(r"\s*(?P<key>\w+)(?:=(?P<value>\S*))?")
_REST: Final = re.compile(r"\s*(?P<key>say|args|json|script)=(?P<value>.*)", re.DOTALL)
"""Settings whose value extends to the closing brackets."""


class DirectiveError(ValueError):
    """A directive is invalid; the message names it and the known settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """The settings of a prompt's directives. Times are in seconds."""

    status: int | None = None
    """Answer with this HTTP status."""
    code: str | None = None
    """The vendor's error code for ``status``."""
    retry_after: float | None = None
    delay: float = 0.0
    """Wait before the answer."""
    hang: bool = False
    """Never answer."""
    stream_delay: float = 0.0
    """Wait before each chunk."""
    hang_after: int | None = None
    """Hang after this many chunks."""
    break_after: int | None = None
    """Close the connection after this many chunks."""
    error_after: int | None = None
    """Send an error, with ``code``, after this many chunks."""
    tool: str | None = None
    """Call this tool."""
    args: Any = None
    """The arguments of the tool call, as JSON."""
    length: bool = False
    """Truncate the answer, as at the token limit."""
    filter: bool = False
    """Reject the prompt as unsafe."""
    withhold: bool = False
    """Withhold the answer as unsafe."""
    garbage: bool = False
    """Answer with invalid JSON."""
    nested: bool = False
    """Answer with JSON that is nested too deeply to be read."""
    empty: bool = False
    """Answer with JSON without choices."""
    too_long: bool = False
    """Reject the prompt as too long for the window."""
    say: str | None = None
    """Answer with this text."""
    json: Any = None
    """Answer with this JSON if the request asks for JSON."""
    script: tuple[ScriptItem, ...] = ()
    """The answers to the turns of the conversation."""
    turn: ScriptedTurn | None = None
    """The script's answer to this request. A prompt cannot set it."""


def _kind(annotation: Any) -> Any:
    """Returns ``int`` for ``int | None``."""
    return next((kind for kind in get_args(annotation) if kind is not NoneType), annotation)


_KINDS: Final[Mapping[str, Any]] = {
    field.name: Any if field.name == "script" else _kind(field.type)
    for field in fields(Directives)
    if field.name != "turn"
}


def without_directives(text: str) -> str:
    remaining, _ = _split_directives(text)
    return remaining.strip()


def read_directives(text: str) -> Directives:
    """Parses the directives of a prompt.

    Raises:
        DirectiveError: a setting is unknown, or its value has the wrong type.
    """
    settings: dict[str, Any] = {}
    for directive in _split_directives(text)[1]:
        at, end = 0, len(directive.rstrip())
        while at < end:
            match = _REST.match(directive, at) or _SETTING.match(directive, at)
            if match is None or match["key"] not in _KINDS:
                raise DirectiveError(f"[[sim:{directive}]]: unknown setting; known: {', '.join(_KINDS)}")
            settings[match["key"]] = _value(match["key"], match["value"])
            at = match.end()
    return Directives(**settings)


def follow_script(directives: Directives, item: ScriptItem, *, repaired: bool) -> Directives:
    """Returns the directives for the turn that the item of a script answers; ``repaired`` without its failure.

    Raises:
        DirectiveError: a setting of the item has the wrong type.
    """
    settings = item.repaired if repaired else item.settings
    for name, value in settings.items():
        kind = _KINDS[name]
        if not isinstance(value, kind) and not (kind is float and isinstance(value, int)):
            raise DirectiveError(f"[[sim:script=…]]: {name} must be {kind.__name__}")
    return replace(directives, script=(), turn=item.turn, delay=item.delay_s, **settings)


def _split_directives(text: str) -> tuple[str, list[str]]:
    """Returns the text without directives, and the content of each directive.

    Takes linear time. A regular expression would search for the end from every opening, so a prompt with many openings
    would block the daemon.
    """
    parts, directives, at = [], [], 0
    while (start := text.find(_OPENING, at)) >= 0 and (end := _end(text, start)) >= 0:
        parts.append(text[at:start])
        directives.append(text[start + len(_OPENING) : end])
        at = end + len(_CLOSING)
    return "".join([*parts, text[at:]]), directives


def _end(text: str, start: int) -> int:
    """Returns the index of the directive's closing brackets; -1 if there are none."""
    if not text.startswith(simulator_script.OPENING, start):
        return text.find(_CLOSING, start)
    end = simulator_script.script_end(text, start + len(simulator_script.OPENING))
    # If a script is invalid, the directive extends to the last closing brackets, because a search from each opening
    # could take quadratic time.
    return text.find(_CLOSING, end) if end >= 0 else text.rfind(_CLOSING, start)


def _value(key: str, value: str | None) -> Any:
    kind = _KINDS[key]
    if kind is bool:
        return True
    try:
        parsed = parse_json(value or "") if kind is Any else kind(value or "")
        return read_script(parsed) if key == "script" else parsed
    except ScriptError as error:
        raise DirectiveError(f"[[sim:script=…]]: {error}") from error
    except ValueError as error:
        expected = "JSON" if kind is Any else kind.__name__
        raise DirectiveError(f"[[sim:{key}={value or ''}]]: {key} must be {expected}") from error
