"""How many tokens a question has, before it is sent and paid for. Pure."""

from collections.abc import Iterable
from typing import Final

BYTES_PER_TOKEN: Final = 4
"""Of UTF-8: four letters of English, one and a third Chinese characters. English text and code come to 3–5 bytes a
token with both vendors' tokenizers, Chinese to 3–5, so this errs low as often as high."""
ERROR: Final = 0.25
"""By how much of itself the estimate may be too low, for such texts."""


def estimate_tokens(texts: Iterable[str]) -> int:
    """About how many tokens the texts are: their UTF-8 bytes by ``BYTES_PER_TOKEN``."""
    return sum(len(text) if text.isascii() else len(text.encode(errors="replace")) for text in texts) // BYTES_PER_TOKEN
