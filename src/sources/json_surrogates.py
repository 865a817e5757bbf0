"""JSON as others write it. Pure."""

import re
from typing import Final

_HIGH: Final = rb"u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"u[dD][c-fC-F][0-9a-fA-F]{2}"
_CUT: Final = rb"(?:u[0-9a-fA-F]{0,3})?"
_ESCAPES: Final = re.compile(
    rb"\\(?:"  # outside of the choice, so that it is found fast
    + b"|".join(
        (
            _HIGH + rb"\\" + _LOW,
            rb"(?P<begun>" + _CUT + rb"\Z|" + _HIGH + rb"(?:\\" + _CUT + rb")?\Z)",
            rb"(?P<half>" + _HIGH + rb"|" + _LOW + rb")",
            rb".",
        )
    )
    + rb")",
    re.DOTALL,
)


class LoneSurrogates:
    """Puts U+FFFD in place of halves of surrogate pairs in JSON that comes in pieces: JavaScript writes such where a
    text was cut within a character, and one name among a hundred must not make all of them unreadable. Sizes stay.
    """

    def __init__(self) -> None:
        self.begun = b""
        """What the last piece ends with and the next one may go on with."""

    def out_of(self, piece: bytes) -> bytes:
        """As much of the text as is known by now."""
        if not self.begun and b"\\" not in piece:
            return piece
        text, self.begun = self.begun + piece, b""
        begin = 0
        if b"\\ud" not in text and b"\\uD" not in text:  # no halves: only the last escape may be one that is begun
            begin = len(text[: text.rfind(b"\\") + 1].rstrip(b"\\"))
        return text[:begin] + _ESCAPES.sub(self._told, text[begin:])

    def _told(self, found: re.Match[bytes]) -> bytes:
        if found["begun"] is not None:
            self.begun = found[0]
            return b""
        return rb"\ufffd" if found["half"] else found[0]


def without_halves(text: bytes) -> bytes:
    """The whole JSON, with U+FFFD in place of halves of surrogate pairs."""
    halves = LoneSurrogates()
    return halves.out_of(text) + halves.begun
