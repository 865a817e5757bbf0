"""Known names that are close to a misspelt one, and how they are offered. Pure."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

MAX_WORD_CHARS: Final = 100
"""Of a word only so much is compared: comparing takes time with its length, and callers may send megabytes."""


def close_names(word: str, known: Iterable[str], n: int = 3) -> list[str]:
    """At most ``n`` of the known names that ``word`` may have meant, however it is capitalised; the closest first."""
    by_lower = {name.lower(): name for name in known}
    return [by_lower[name] for name in difflib.get_close_matches(word[:MAX_WORD_CHARS].lower(), by_lower, n)]


def did_you_mean(names: Sequence[str]) -> str:
    """``did you mean 'chat'?``, ``did you mean 'chat' or 'echo'?``; empty where there are no names."""
    return f"did you mean {' or '.join(map(repr, names))}?" if names else ""


def as_sentence(told: str) -> str:
    """With a full stop, unless it ends as a sentence does, as where it asks what was meant."""
    return told if told.endswith((".", "!", "?")) else f"{told}."
