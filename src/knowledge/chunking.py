"""Cuts the text of a document into chunks, at the ends of sections, paragraphs and sentences. Pure."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from .document_text import DocumentText, Heading

_PARAGRAPH: Final = re.compile(r"\n[ \t]*\n\s*+")
_SENTENCE: Final = re.compile(r"[.!?…][\"'”’)\]]*+\s++|[。！？]|\n")
_WORD: Final = re.compile(r"\s++")
_SHORT: Final = 4
"""A heading does not end a chunk that is shorter than 1/4 of the maximum size, so that titles and short sections do not
become chunks.
"""


class _Boundary(IntEnum):
    """The kind of boundary before a piece of the text."""

    WORD = 0
    SENTENCE = 1
    PARAGRAPH = 2
    SECTION = 3


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document that is searched and cited."""

    text: str
    line: int
    """The line of the document in which the chunk begins."""
    heading: str
    """The headings above the chunk, outermost first, such as ``Install > Linux``; empty if there are none."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A range of the text that is not cut further, and the boundary before it."""

    start: int
    end: int
    boundary: _Boundary


def cut_document(document: DocumentText, *, size: int, overlap: int) -> list[Chunk]:
    """Returns the chunks, of at most ``size`` characters. Each repeats up to ``overlap`` characters of the previous
    chunk, unless it begins a section. A sentence is cut only if it is longer than a chunk.
    """
    pieces = list(_pieces(document, size))
    headings = _HeadingPaths(document.headings)
    chunks: list[Chunk] = []
    first = 0
    while first < len(pieces):
        end = _end_of_chunk(pieces, first, size)
        start = pieces[first].start
        raw = document.text[start : pieces[end - 1].end]
        if text := raw.strip():
            place = start + len(raw) - len(raw.lstrip())
            chunks.append(Chunk(text, document.line_at(place), headings.at(place)))
        if end == len(pieces):
            break
        first = _start_of_next(pieces, first, end, size, overlap)
    return chunks


def _end_of_chunk(pieces: list[_Piece], first: int, size: int) -> int:
    """The index after the chunk's last piece."""
    start, end = pieces[first].start, first + 1
    while end < len(pieces) and pieces[end].end - start <= size:
        if pieces[end].boundary is _Boundary.SECTION and pieces[end].start - start >= size // _SHORT:
            return end
        end += 1
    if end == len(pieces):
        return end
    half = next((each for each in range(first + 1, end) if pieces[each].start - start >= size // 2), end)
    return max(range(half, end + 1), key=lambda each: (pieces[each].boundary, each))


def _start_of_next(pieces: list[_Piece], first: int, end: int, size: int, overlap: int) -> int:
    """The index of the next chunk's first piece. The next chunk always has text that this one lacks."""
    next_first = end
    while (
        next_first - 1 > first
        and pieces[next_first].boundary is not _Boundary.SECTION
        and pieces[end].start - pieces[next_first - 1].start <= overlap
        and pieces[end].end - pieces[next_first - 1].start <= size
    ):
        next_first -= 1
    return next_first


def _pieces(document: DocumentText, size: int) -> Iterator[_Piece]:
    """The sentences of the text. Sentences that are longer than a chunk are divided."""
    text = document.text
    cuts: dict[int, _Boundary] = {match.end(): _Boundary.SENTENCE for match in _SENTENCE.finditer(text)}
    cuts |= {match.end(): _Boundary.PARAGRAPH for match in _PARAGRAPH.finditer(text)}
    cuts |= {heading.start: _Boundary.SECTION for heading in document.headings}
    start, boundary = 0, _Boundary.SECTION
    for cut in [*sorted(cut for cut in cuts if 0 < cut < len(text)), len(text)]:
        if cut - start > size:
            yield from _parts(text, start, cut, boundary, size)
        elif cut > start:
            yield _Piece(start, cut, boundary)
        start, boundary = cut, cuts.get(cut, _Boundary.WORD)


def _parts(text: str, start: int, end: int, boundary: _Boundary, size: int) -> Iterator[_Piece]:
    words = [match.end() for match in _WORD.finditer(text, start, end)]
    while end - start > size:
        last = words[index - 1] if (index := bisect_right(words, start + size)) else start
        cut = last if last > start + size // 2 else start + size
        yield _Piece(start, cut, boundary)
        start, boundary = cut, _Boundary.WORD
    if end > start:
        yield _Piece(start, end, boundary)


class _HeadingPaths:
    """The paths of headings above each place of the text."""

    def __init__(self, headings: tuple[Heading, ...]) -> None:
        self._headings = headings
        self._outer: list[int | None] = []
        open_headings: list[int] = []
        for index, heading in enumerate(headings):
            while open_headings and headings[open_headings[-1]].level >= heading.level:
                open_headings.pop()
            self._outer.append(open_headings[-1] if open_headings else None)
            open_headings.append(index)

    def at(self, offset: int) -> str:
        """The path to this place; empty before the first heading."""
        path: list[str] = []
        index: int | None = bisect_right(self._headings, offset, key=lambda heading: heading.start) - 1
        while index is not None and index >= 0:
            path.insert(0, self._headings[index].title)
            index = self._outer[index]
        return " > ".join(path)
