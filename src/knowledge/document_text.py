"""Reads the text of a document, its headings and their lines, from Markdown, HTML and plain text. Pure.

Every function takes time linear in the length of any text.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from html import unescape
from typing import Final, NamedTuple

from .html_tokens import INLINE, html_tokens

MAX_TITLE_CHARS: Final = 200
"""The maximum length of a title or heading; the rest is cut off."""

_HTML_SUFFIXES: Final = (".html", ".htm")
_MARKDOWN_SUFFIXES: Final = (".md", ".markdown")
_ATX_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*)")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_SETEXT: Final = re.compile(r"(=+|-+)[ \t]*")

_SPACE: Final = re.compile(r"\s+")


class Heading(NamedTuple):
    """A heading of a document."""

    start: int
    """The offset at which the heading begins."""
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a document."""

    title: str
    text: str
    headings: tuple[Heading, ...]
    """The headings in the order of the text."""
    starts: tuple[int, ...]
    """The offsets at which pieces with known lines begin."""
    lines: tuple[int, ...]
    """The lines of the document in which these pieces begin, from 1."""

    def line_at(self, offset: int) -> int:
        """The line of the document with this character of the text."""
        return self.lines[max(0, bisect_right(self.starts, offset) - 1)] if self.lines else 1


def read_document(name: str, text: str) -> DocumentText:
    """Returns the text of a document. The suffix of its name decides its format."""
    lower = name.lower()
    if lower.endswith(_HTML_SUFFIXES):
        return _read_html(name, text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", " ")
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    headings = tuple(_markdown_headings(text)) if lower.endswith(_MARKDOWN_SUFFIXES) else ()
    title = min(headings, key=lambda heading: heading.level).title if headings else _first_line(text)
    return DocumentText(title or name, text, headings, tuple(starts), tuple(range(1, len(starts) + 1)))


def _first_line(text: str) -> str:
    return _shortened(next((line for line in text[:2_000].splitlines() if line.strip()), ""))


def _shortened(title: str) -> str:
    return _SPACE.sub(" ", title[: 4 * MAX_TITLE_CHARS]).strip()[:MAX_TITLE_CHARS]


def _markdown_headings(text: str) -> Iterator[Heading]:
    start, fence, earlier, earlier_start = 0, "", "", 0
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\n")[: 8 * MAX_TITLE_CHARS]
        mark = _FENCE.match(content)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            content = ""
        elif mark:
            fence, content = mark[1], ""
        elif heading := _ATX_HEADING.fullmatch(content):
            yield Heading(start, len(heading[1]), _shortened(heading[2].rstrip("# \t")))
            content = ""
        elif earlier.strip() and _SETEXT.fullmatch(content) and not earlier.lstrip().startswith(("-", "*", "|", ">")):
            yield Heading(earlier_start, 1 if content[0] == "=" else 2, _shortened(earlier))
            content = ""
        earlier, earlier_start = content, start
        start += len(line)


def _read_html(name: str, source: str) -> DocumentText:
    pieces: list[str] = []
    starts: list[int] = []
    lines: list[int] = []
    headings: list[Heading] = []
    title, length, counted, line, level = "", 0, 0, 1, 0
    for kind, value, place in html_tokens(source):
        line, counted = line + source.count("\n", counted, place), place
        piece = ""
        if kind == "title":
            title = _shortened(unescape(value[: 4 * MAX_TITLE_CHARS]))
        elif kind == "text":
            piece = _SPACE.sub(" ", unescape(value).replace("\0", " "))
            if level and piece.strip():
                last = headings[-1]
                headings[-1] = last._replace(title=_shortened(f"{last.title} {piece}"))
        elif value.startswith("h") and value[1:] in {"1", "2", "3", "4", "5", "6"}:
            piece = "\n\n"
            level = int(value[1:]) if kind == "open" else 0
            if level:
                headings.append(Heading(length + 2, level, ""))
        elif value in {"td", "th"}:
            piece = " " if kind == "open" else " | "
        elif value not in INLINE:
            piece = "\n" if value in {"br", "li", "tr", "dt", "dd"} else "\n\n"
        if piece:
            starts.append(length)
            lines.append(line)
            pieces.append(piece)
            length += len(piece)
    titled = tuple(heading for heading in headings if heading.title)
    return DocumentText(
        title or (titled[0].title if titled else "") or name, "".join(pieces), titled, tuple(starts), tuple(lines)
    )
