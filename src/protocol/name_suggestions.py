"""Suggestions for misspelt names. Pure."""

import difflib
import heapq
from collections.abc import Iterable, Sequence
from typing import Final

MAX_WORD_CHARS: Final = 100
"""Only this many characters of a word are compared, because callers may send megabytes."""


MAX_COMPARED: Final = 200
"""If there are more names, only the names that share the most parts with the word are compared. A vendor may list
thousands.
"""
_PART_CHARS: Final = 3

MODEL_LIST_HINT: Final = "`listmodels` lists the models."
"""Where callers of tools find the names of models. OpenAI's API replaces it with a path."""


def close_names(word: str, known: Iterable[str], n: int = 3) -> list[str]:
    """Returns up to ``n`` known names similar to ``word``, ignoring case, the closest first."""
    by_lower = {name.lower(): name for name in known}
    lower = word[:MAX_WORD_CHARS].lower()
    candidates = by_lower if len(by_lower) <= MAX_COMPARED else _sharing_parts(lower, by_lower)
    return [by_lower[name] for name in difflib.get_close_matches(lower, candidates, n)]


def _sharing_parts(word: str, names: Iterable[str]) -> list[str]:
    """Returns the ``MAX_COMPARED`` names that contain the most parts of the word."""
    parts = {word[at : at + _PART_CHARS] for at in range(max(1, len(word) - _PART_CHARS + 1))}
    return heapq.nlargest(MAX_COMPARED, names, key=lambda name: sum(part in name for part in parts))


def did_you_mean(names: Sequence[str]) -> str:
    """Returns ``did you mean 'chat'?`` or ``did you mean 'chat' or 'echo'?``; empty if there are no names."""
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def as_sentence(text: str) -> str:
    """Adds a full stop unless the text already ends a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
