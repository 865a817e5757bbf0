"""Repairs lone surrogates in JSON text. Pure."""

import re
from typing import Final

_HIGH: Final = rb"u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
_CUT: Final = rb"(?:u[0-9a-fA-F]{0,3})?"
_ESCAPES: Final = re.compile(
    rb"\\(?:"  # before the alternatives, for a fast search
    + b"|".join(
        (
            _HIGH + rb"\\" + _LOW,
            rb"(?P<partial>" + _CUT + rb"\Z|" + _HIGH + rb"(?:\\" + _CUT + rb")?\Z)",
            rb"(?P<lone>" + _HIGH + rb"|" + _LOW + rb")",
            rb".",
        )
    )
    + rb")",
    re.DOTALL,
)


class LoneSurrogates:
    """Replaces lone surrogate escapes by U+FFFD in JSON that arrives in chunks. Sizes stay the same.

    JavaScript writes lone surrogates for text that was truncated within a character. One such name must not make a
    whole listing unreadable.
    """

    def __init__(self) -> None:
        self.partial = b""
        """An incomplete escape at the end of the last chunk."""

    def replace(self, chunk: bytes) -> bytes:
        """Returns the text up to an incomplete escape."""
        if not self.partial and b"\\" not in chunk:
            return chunk
        text, self.partial = self.partial + chunk, b""
        begin = 0
        if b"\\ud" not in text and b"\\uD" not in text:  # no surrogates: only the last escape can be incomplete
            begin = len(text[: text.rfind(b"\\") + 1].rstrip(b"\\"))
        return text[:begin] + _ESCAPES.sub(self._replacement, text[begin:])

    def _replacement(self, match: re.Match[bytes]) -> bytes:
        if match["partial"] is not None:
            self.partial = match[0]
            return b""
        return rb"\ufffd" if match["lone"] else match[0]


def replace_lone_surrogates(text: bytes) -> bytes:
    """Returns the JSON text, with lone surrogate escapes replaced by U+FFFD."""
    replacer = LoneSurrogates()
    return replacer.replace(text) + replacer.partial
