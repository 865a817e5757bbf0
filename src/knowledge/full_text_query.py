"""Prepares documents and questions for SQLite's full-text search. Pure."""

import re
from typing import Final

MAX_QUERY_WORDS: Final = 64
"""The maximum number of words of a question that are searched; each costs a look-up."""

_UNSPACED: Final = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f])")
"""Matches characters of Chinese, Japanese and Thai, which do not separate words by spaces. Each character counts as a
word.
"""
_WORDS: Final = re.compile(r"\w+")


def spaced(text: str) -> str:
    """The text with spaces around each character of a script without them."""
    return _UNSPACED.sub(r" \1 ", text)


def match_expression(question: str) -> str | None:
    """The question in FTS5's language: matches any of its words, so that every question is valid. None if it has no
    words.

    In scripts without spaces, consecutive characters are searched as a phrase.
    """
    terms: dict[str, None] = {}
    for word in _WORDS.findall(question):
        phrase = " ".join(spaced(word).split())
        terms.setdefault(f'"{phrase}"')
        if len(terms) == MAX_QUERY_WORDS:
            break
    return " OR ".join(terms) or None
