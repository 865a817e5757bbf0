"""Estimates the number of tokens of a text by character classes. Pure.

The vendors' tokenizers are not available, so the weights follow from known properties of such tokenizers: they split
numbers into groups of three digits, join a blank with the following word, and split long words. Moonshot states that a
token is 3 to 4 characters of English or 1.5 to 2 of Chinese (platform.moonshot.ai/docs/introduction). With these
weights six published counts from the vendors' responses (Chinese and English prose with some SQL, 25 to 186 tokens,
from Kimi and GLM-4.6) are estimated within 10 %. Source code, other scripts and long texts were not among them, hence
the larger error bound.
"""

import re
from collections.abc import Iterable
from math import ceil
from typing import Any, Final

ESTIMATE_ERROR: Final = 0.3
"""The relative error of the estimate in either direction."""

TOKENS_PER_MESSAGE: Final = 4
"""Tokens that the vendors' chat templates add per message."""
TOKENS_PER_IMAGE: Final = 1_024
"""Tokens per image: Moonshot's flat rate (kimi.com/help/kimi-api/api-model-selection). Zhipu names none."""

_WORD_LETTERS: Final = 6
"""Letters per token in a word. A shorter word is one token."""
_MARKS: Final = 2
"""Consecutive punctuation marks per token."""
_PER_IDEOGRAPH: Final = 0.6
_PER_LETTER: Final = 0.5
"""Letters per token in alphabets other than unaccented Latin."""

_PIECE: Final = re.compile(
    r"(?P<word>[A-Za-z]+)"
    r"|(?P<number>[0-9]{1,3})"
    r"|(?P<blank> )(?! )"
    r"|(?P<space>\s+)"
    r"|(?P<marks>[!-/:-@\[-`{-~]+)"
    r"|(?P<ideographs>[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+)"
    r"|(?P<sign>[\u2000-\u303f\uff00-\uffef\U0001f000-\U0001ffff])"
    r"|(?P<letters>[^\x00-\x7f\u2000-\uffef\U0001f000-\U0003ffff]+)"
    r"|(?P<other>.)",
    re.DOTALL,
)


def estimate_text(text: str) -> int:
    """Estimates the tokens of a text."""
    return ceil(sum(_weight(piece) for piece in _PIECE.finditer(text)))


def estimate_body(body: dict[str, Any]) -> int:
    """Estimates the tokens of a chat body's messages, images and tools."""
    tokens = sum(estimate_text(text) for tool in body.get("tools") or () for text in _strings(tool))
    for message in body.get("messages") or ():
        tokens += TOKENS_PER_MESSAGE + sum(_estimate_part(part) for part in _parts(message))
    return tokens


def _parts(message: dict[str, Any]) -> Iterable[Any]:
    content = message.get("content")
    yield from content if isinstance(content, list) else (content or "",)
    yield message.get("reasoning_content") or ""
    yield from _strings(message.get("tool_calls") or ())


def _estimate_part(part: Any) -> int:
    if isinstance(part, str):
        return estimate_text(part)
    return TOKENS_PER_IMAGE if part.get("type") == "image_url" else estimate_text(str(part.get("text", "")))


def _strings(value: Any) -> Iterable[str]:
    """Yields every string in a JSON value, including keys, which make up most of a schema's tokens."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _weight(piece: re.Match[str]) -> float:
    length = piece.end() - piece.start()
    match piece.lastgroup:
        case "word":
            return max(1.0, length / _WORD_LETTERS)
        case "blank":
            return 0.0
        case "marks":
            return max(1.0, length / _MARKS)
        case "ideographs":
            return length * _PER_IDEOGRAPH
        case "letters":
            return max(1.0, length * _PER_LETTER)
        case _:  # a number, more than one blank, a sign, or anything else
            return 1.0
