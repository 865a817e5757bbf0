"""Limits how much a model reads of the results of one turn's calls. Pure."""

from collections.abc import Sequence
from typing import Final

from ..completions import estimate_tokens

MAX_RESULT_CHARS: Final = 30_000
"""The maximum characters of one result that a model reads: some 8,000 tokens."""
MAX_TURN_TOKENS: Final = 32_000
"""The maximum for all results of a turn: as much as four results of maximum length. A turn may have 64 calls."""
WINDOW_SHARE: Final = 4
"""All results of a turn take at most a fourth of the model's window, so that earlier work also fits."""
UNKNOWN_WINDOW: Final = 32_768
"""The assumed window for this limit if it is unknown, which is usual for small models."""
_MIN_CHARS: Final = 200
"""The minimum characters of each result; for 64 results, some 3,000 tokens."""
_SAMPLE_CHARS: Final = 2048
"""The tokens per character are counted at the beginning of a long text, because counting all of it takes too long."""


def tokens_of_turn(window: int) -> int:
    """The maximum tokens of the results of one turn. ``window`` is the model's window; 0 if unknown."""
    return min(MAX_TURN_TOKENS, (window or UNKNOWN_WINDOW) // WINDOW_SHARE)


def read_chars(texts: Sequence[str], tokens: int) -> list[int]:
    """The characters of each text that are read, if all texts together may have ``tokens``. Short texts are read as a
    whole, and the others share the rest equally.
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
    """The text. If it is longer than ``chars``, its beginning and end, with a note that says how much is omitted and
    where the whole text is stored.
    """
    if len(text) <= chars:
        return text
    head = chars * 2 // 3
    where = f'; read_result has all of it: {{"handle": "{handle}"}}' if handle else ""
    return f"{text[:head]}\n[… {len(text) - chars:,} characters omitted{where} …]\n{text[len(text) - chars + head :]}"


def _tokens(text: str, chars: int) -> int:
    sample = text[: min(chars, _SAMPLE_CHARS)]
    return estimate_tokens((sample,)) * chars // max(1, len(sample))
