"""Reads the front matter of prompts in dotprompt's format, and their messages. Pure."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ..tools import TemplateFormat, YamlError, read_yaml

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_MAX_DEPTH: Final = 16
_MAX_ALIASED: Final = 1000
_FORMATS: Final[Mapping[str, TemplateFormat]] = {
    "mustache": "mustache",
    "f-string": "f-string",
    "f_string": "f-string",
    "fstring": "f-string",
    "none": "none",
}
_MESSAGE_START: Final = re.compile(
    r"""^[ \t]*(System|Developer|User|Assistant):[ \t]*|\{\{\s*role\s+["'](\w+)["']\s*\}\}[ \t]*\n?""", re.MULTILINE
)
_INSTRUCTING: Final = frozenset({"system", "developer"})


class PromptFormatError(ValueError):
    """A source's prompt cannot be used; the message gives the reason."""


class FrontMatter(NamedTuple):
    """The content of a prompt's front matter."""

    text: str
    """The text after the front matter."""
    is_present: bool
    model: str | None = None
    template_format: TemplateFormat | None = None
    defaults: Mapping[str, Any] = {}
    """Default values, for variables that a role's metadata lacks."""


def split_front_matter(text: str) -> FrontMatter:
    """Split a text at its front matter. Keys other than ``model``, ``template_format`` and ``input.default`` are
    ignored.

    Raises:
        PromptFormatError: the front matter is invalid.
    """
    text = text.removeprefix("\ufeff")
    match = _FRONT_MATTER.match(text)
    if match is None:
        return FrontMatter(text, is_present=False)
    try:
        fields = read_yaml(match[1].encode(), max_depth=_MAX_DEPTH, max_aliased=_MAX_ALIASED)
    except YamlError as error:
        raise PromptFormatError(f"its front matter is not YAML ({error})") from None
    if not isinstance(fields, dict):  # a horizontal rule in Markdown
        return FrontMatter(text, is_present=False)
    model, inputs = fields.get("model"), fields.get("input")
    if model is not None and not isinstance(model, str):
        raise PromptFormatError("the model of its front matter is not text")
    defaults = inputs.get("default") if isinstance(inputs, dict) else None
    return FrontMatter(
        text=text[match.end() :],
        is_present=True,
        model=model or None,
        template_format=template_format_named(fields.get("template_format")),
        defaults=defaults if isinstance(defaults, dict) else {},
    )


def template_format_named(name: object) -> TemplateFormat | None:
    """Return the format that a source names, such as ``F_STRING``; None if it names no format.

    Raises:
        PromptFormatError: the format is not supported.
    """
    if name is None:
        return None
    known = _FORMATS.get(str(name).lower())
    if known is None:
        raise PromptFormatError(f"its template format is {str(name)[:40]!r}, not mustache, f-string or none")
    return known


def instructions_of(text: str) -> str:
    """Return the system messages of a dotprompt text; the first message if there are none.

    Messages start with ``System:``, ``User:`` or ``Assistant:`` on a line, or with ``{{role "system"}}``. A text
    without them is one message.
    """
    starts = list(_MESSAGE_START.finditer(text))
    if not starts or text[: starts[0].start()].strip():
        return text
    ends = [start.start() for start in starts[1:]] + [len(text)]
    messages = [
        ((start[1] or start[2]).lower(), text[start.end() : end].strip())
        for start, end in zip(starts, ends, strict=True)
    ]
    return joined_instructions(messages)


def joined_instructions(messages: list[tuple[str, str]]) -> str:
    """Return the texts of the system messages; the text of the first message if there are none.

    ``messages``: role and text of each.
    """
    system = [text for role, text in messages if role in _INSTRUCTING and text]
    return "\n\n".join(system or [text for _, text in messages[:1]])
