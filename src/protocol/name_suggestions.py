"""Suggestions for misspelt names. Pure."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

MAX_WORD_CHARS: Final = 100
"""Only this many characters of a word are compared: callers may send megabytes, and comparing takes time."""


def close_names(word: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Returns up to ``n`` known names similar to ``word``, ignoring case, the closest first."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in difflib.get_close_matches(word[:MAX_WORD_CHARS].lower(), by_lower, n)]


def did_you_mean(names: Sequence[str]) -> str:
    """Returns ``did you mean 'chat'?`` or ``did you mean 'chat' or 'echo'?``; empty if there are no names."""
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def as_sentence(text: str) -> str:
    """Adds a full stop unless the text already ends a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
