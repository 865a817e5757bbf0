"""Fills in MUSTACHE templates: variables, sections, inverted sections and comments. Pure.

Values are inserted unescaped, because prompts are not HTML. Names are only keys of mappings, so a template can neither
call functions nor read attributes. Partials and other delimiters are refused.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..tools import PromptError
from .prompt_variables import MAX_PROMPT_CHARS, VARIABLE_NAME, as_text, looked_up, prompt_too_long

MAX_NESTING: Final = 32
"""The maximum nesting of sections."""
MAX_STEPS: Final = 100_000
"""The maximum number of rendered parts. Nested sections multiply the parts within them."""

_TAG: Final = re.compile(r"\{\{\{(?P<unescaped>[^{}]*)\}\}\}|\{\{(?P<sign>[#^/!&>=]?)(?P<name>[^{}]*)\}\}")
_PATH: Final = re.compile(rf"\.|{VARIABLE_NAME.pattern}(?:\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class _Variable:
    name: str


@dataclass(slots=True)
class _Section:
    name: str
    inverted: bool = False
    parts: "list[str | _Variable | _Section]" = field(default_factory=list)


def fill_mustache(template: str, variables: Mapping[str, object]) -> str:
    """Return the template with its variables filled in.

    Raises:
        PromptError: the template has an unknown variable or an invalid tag, or the result is too long.
    """
    rendering = _Rendering()
    rendering.render(_parsed(template).parts, [variables])
    return "".join(rendering.pieces)


def _parsed(template: str) -> _Section:
    root = _Section("")
    open_sections = [root]
    position = 0
    for tag in _TAG.finditer(template):
        start, end = _extent(template, tag)
        open_sections[-1].parts.append(template[position:start])
        position = end
        name = (tag["name"] if tag["unescaped"] is None else tag["unescaped"]).strip()
        match tag["sign"]:
            case "!":
                continue
            case ">" | "=":
                raise PromptError(f"the template's tag {_shown(tag[0])} is not supported: a partial or delimiters")
        if not _PATH.fullmatch(name):
            raise PromptError(f"the template has the tag {_shown(tag[0])}, which is not the name of a variable")
        match tag["sign"]:
            case "#" | "^":
                section = _Section(name, tag["sign"] == "^")
                open_sections[-1].parts.append(section)
                open_sections.append(section)
                if len(open_sections) > MAX_NESTING + 1:
                    raise PromptError(f"the template has sections more than {MAX_NESTING} levels deep")
            case "/":
                if len(open_sections) == 1 or open_sections.pop().name != name:
                    raise PromptError(f"the template has {_shown(tag[0])} without the section that it ends")
            case _:
                open_sections[-1].parts.append(_Variable(name))
    if len(open_sections) > 1:
        raise PromptError(f"the template's section {_shown(open_sections[-1].name)} has no end")
    root.parts.append(template[position:])
    return root


def _extent(template: str, tag: re.Match[str]) -> tuple[int, int]:
    """The start and end of the tag. A section's tag or a comment that is alone on its line includes the whole line."""
    start, end = tag.span()
    if not tag["sign"] or tag["sign"] == "&":
        return start, end
    # Step by step, because a line may have a million characters and as many tags.
    line_start, line_end = start, end
    while line_start > 0 and template[line_start - 1] in " \t":
        line_start -= 1
    while line_end < len(template) and template[line_end] in " \t\r":
        line_end += 1
    if (line_start > 0 and template[line_start - 1] != "\n") or template[line_end : line_end + 1] not in {"", "\n"}:
        return start, end
    return line_start, line_end + 1


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:60]}…")


class _Rendering:
    """Renders parts, within the limits."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._chars = 0
        self._steps = 0

    def render(self, parts: "Sequence[str | _Variable | _Section]", scopes: list[object]) -> None:
        for part in parts:
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise PromptError(f"the template repeats its sections into more than {MAX_STEPS:,} parts")
            match part:
                case str():
                    self._add(part)
                case _Variable(name):
                    self._add(as_text(_value(name, scopes)))
                case _Section():
                    for scope in _scopes_of(part, scopes):
                        self.render(part.parts, scope)

    def _add(self, piece: str) -> None:
        self._chars += len(piece)
        if self._chars > MAX_PROMPT_CHARS:
            raise prompt_too_long()
        self.pieces.append(piece)


def _value(name: str, scopes: list[object]) -> object:
    return scopes[-1] if name == "." else looked_up(name, scopes)


def _scopes_of(section: _Section, scopes: list[object]) -> Iterator[list[object]]:
    """The scopes of each repetition of a section: one per item of a list, one for any other true value."""
    value = _value(section.name, scopes)
    if section.inverted:
        if not value:
            yield scopes
    elif isinstance(value, list | tuple):
        for item in value:
            yield [*scopes, item]
    elif value:
        yield [*scopes, value]
