"""What a prompt may ask of the simulator: ``[[sim:…]]`` in the last user message. Pure.

``[[sim:status=429 retry_after=2]]`` holds several settings; docs/providers.md lists them. Files that are attached to
the message do not count, so a page about the simulator can be discussed with it.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Final, get_args

_OPENING: Final = "[[sim:"
_CLOSING: Final = "]]"
_SETTING: Final = re.compile(r"\s*(?P<key>\w+)(?:=(?P<value>\S*))?")
_REST: Final = re.compile(r"\s*(?P<key>say|args|json)=(?P<value>.*)", re.DOTALL)
"""Settings that take all that follows within the brackets."""


class DirectiveError(ValueError):
    """A directive is wrong; the message says which and what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directives:
    """What the prompt asked for; seconds where a time is meant."""

    status: int | None = None
    """Answer with this HTTP status."""
    code: str | None = None
    """The vendor's error code that goes with it."""
    retry_after: float | None = None
    delay: float = 0.0
    """Wait before the answer."""
    hang: bool = False
    """Never answer."""
    stream_delay: float = 0.0
    """Wait before each chunk."""
    hang_after: int | None = None
    """Never go on after so many chunks."""
    break_after: int | None = None
    """Close the connection after so many chunks."""
    error_after: int | None = None
    """Send an error, with ``code``, after so many chunks."""
    tool: str | None = None
    """Ask for this tool."""
    args: Any = None
    """The arguments to ask for it with, as JSON."""
    length: bool = False
    """Stop in the middle, as at the bound on the answer."""
    filter: bool = False
    """Refuse the question as unsafe."""
    withhold: bool = False
    """Withhold the answer as unsafe."""
    garbage: bool = False
    """Answer with what is not JSON."""
    empty: bool = False
    """Answer with JSON that has no choices."""
    too_long: bool = False
    """Refuse the question as longer than the window."""
    say: str | None = None
    """Answer with these words."""
    json: Any = None
    """Answer with this JSON, where JSON is asked for."""


def _kind(annotation: Any) -> Any:
    """``int`` of ``int | None``."""
    return next((kind for kind in get_args(annotation) if kind is not NoneType), annotation)


_KINDS: Final[Mapping[str, Any]] = {field.name: _kind(field.type) for field in fields(Directives)}


def without_directives(text: str) -> str:
    words, _ = _take_apart(text)
    return words.strip()


def read_directives(text: str) -> Directives:
    """What a prompt asks for.

    Raises:
        DirectiveError: a setting is unknown, or its value is not of its kind.
    """
    settings: dict[str, Any] = {}
    for wish in _take_apart(text)[1]:
        at, end = 0, len(wish.rstrip())
        while at < end:
            match = _REST.match(wish, at) or _SETTING.match(wish, at)
            if match is None or match["key"] not in _KINDS:
                raise DirectiveError(f"[[sim:{wish}]]: unknown setting; there are {', '.join(_KINDS)}")
            settings[match["key"]] = _value(match["key"], match["value"])
            at = match.end()
    return Directives(**settings)


def _take_apart(text: str) -> tuple[str, list[str]]:
    """The text without its directives, and what stands within the brackets of each.

    Looks at no place twice, whatever the text: a pattern would look for the end anew from every beginning, and a
    prompt full of beginnings would block the daemon.
    """
    words, wishes, at = [], [], 0
    while (start := text.find(_OPENING, at)) >= 0 and (end := text.find(_CLOSING, start)) >= 0:
        words.append(text[at:start])
        wishes.append(text[start + len(_OPENING) : end])
        at = end + len(_CLOSING)
    return "".join([*words, text[at:]]), wishes


def _value(key: str, value: str | None) -> Any:
    kind = _KINDS[key]
    if kind is bool:
        return True
    try:
        return json.loads(value or "") if kind is Any else kind(value or "")
    except ValueError as error:
        wanted = "JSON" if kind is Any else kind.__name__
        raise DirectiveError(f"[[sim:{key}={value or ''}]]: {key} must be {wanted}") from error
