"""JSON as others write it. Pure."""

import re
from typing import Final

_ESCAPES: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
    rb"|\\."
)


def without_halves(text: bytes) -> bytes:
    """The JSON with U+FFFD in place of halves of surrogate pairs: JavaScript writes such where a text was cut within a
    character, and one name among a hundred must not make all of them unreadable.
    """
    return _ESCAPES.sub(lambda found: rb"\ufffd" if found["half"] else found[0], text)
