"""Limits how much of the results of one turn's calls a model reads, together. Pure."""

from collections.abc import Sequence
from typing import Final

from ..completions import estimate_tokens

MAX_RESULT_CHARS: Final = 30_000
"""How much of one result a model reads: some 8,000 tokens."""
MAX_TURN_TOKENS: Final = 32_000
"""How much of all results of a turn a model reads: as much as four of the longest results. A turn may have 64 calls."""
WINDOW_SHARE: Final = 4
"""All results of a turn take at most a fourth of the model's window, so that the work before them fits too."""
UNKNOWN_WINDOW: Final = 32_768
"""The window that is assumed for this limit if it is unknown, which is usual for small models."""
_MIN_CHARS: Final = 200
"""At least this much of each result is read; for 64 results, that is some 3,000 tokens."""
_SAMPLE_CHARS: Final = 2048
"""Counting all of a long text would take too long: the tokens per character are counted at its beginning."""


def tokens_of_turn(window: int) -> int:
    """How many tokens the results of one turn may have; ``window`` is the model's, 0 if unknown."""
    return min(MAX_TURN_TOKENS, (window or UNKNOWN_WINDOW) // WINDOW_SHARE)


def read_chars(texts: Sequence[str], tokens: int) -> list[int]:
    """How many characters of each text are read, if all together may have ``tokens``. Short ones are read as a whole,
    and the others share the rest equally.
    """
    chars = [min(len(text), MAX_RESULT_CHARS) for text in texts]
    if sum(chars) <= tokens:  # a token has at least one character
        return chars
    sizes = [_tokens(text, length) for text, length in zip(texts, chars, strict=True)]
    if sum(sizes) <= tokens:
        return chars
    ascending = sorted(range(len(texts)), key=lambda index: sizes[index])
    for position, index in enumerate(ascending):
        share = max(0, tokens) // (len(texts) - position)
        if sizes[index] > share:
            chars[index] = min(chars[index], max(_MIN_CHARS, chars[index] * share // sizes[index]))
        tokens -= min(sizes[index], share)
    return chars


def shortened(text: str, chars: int, handle: str = "") -> str:
    """The text; if it is longer than ``chars``, its beginning and end, with a note that says how much is left out and
    where it is stored.
    """
    if len(text) <= chars:
        return text
    head = chars * 2 // 3
    where = f'; read_result has all of it: {{"handle": "{handle}"}}' if handle else ""
    return f"{text[:head]}\n[… {len(text) - chars:,} characters omitted{where} …]\n{text[len(text) - chars + head :]}"


def _tokens(text: str, chars: int) -> int:
    sample = text[: min(chars, _SAMPLE_CHARS)]
    return estimate_tokens((sample,)) * chars // max(1, len(sample))
