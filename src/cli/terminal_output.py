"""All output of the command line. On a terminal, escape sequences are removed from text of tools and other sources,
which could otherwise retitle the window, move the cursor or fill the clipboard. Files and pipes get the text unchanged.
"""

import json
import re
import sys
from dataclasses import dataclass
from typing import Final

import click

from ..protocol.terminal_text import terminal_safe

_KEPT: Final = "\n\t\u200c\u200d"
"""Characters that stay: line breaks, tabs, and the joiners of Persian, Indian scripts and emoji, which do not change a
terminal's state."""

_OPAQUE: Final = re.compile(r"[^\n\x20-\x7e]")
"""Characters that may be unprintable. JSON escapes only the control characters below the space."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A part of a line with a colour, or dim or bold, on a terminal."""

    text: str
    colour: str | None = None
    dim: bool = False
    bold: bool = False


def say(*parts: str | Styled, err: bool = False, nl: bool = True) -> None:
    """Print the parts as one line, or as several lines if they contain line breaks."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        click.echo("".join(map(_shown, parts)), err=err, nl=nl)
    else:  # color=True: click would remove what looks like an escape sequence
        text = "".join(part.text if isinstance(part, Styled) else part for part in parts)
        click.echo(text, err=err, nl=nl, color=True)


def say_json(content: bytes) -> None:
    """Print a JSON text; on a terminal, with escapes for characters that are not printable."""
    say(json_for_terminal(content.decode()) if sys.stdout.isatty() else content.decode())


def text_for_terminal(text: str) -> str:
    """The text with a space for each character that is not printable, except line breaks, tabs and joiners."""
    return terminal_safe(text, keep=_KEPT)


def json_for_terminal(content: str) -> str:
    """The same JSON value, with an escape for each character that is not printable, except line breaks."""
    return _OPAQUE.sub(lambda match: match[0] if match[0].isprintable() else json.dumps(match[0])[1:-1], content)


def _shown(part: str | Styled) -> str:
    if isinstance(part, Styled):
        return click.style(text_for_terminal(part.text), fg=part.colour, dim=part.dim or None, bold=part.bold or None)
    return text_for_terminal(part)
