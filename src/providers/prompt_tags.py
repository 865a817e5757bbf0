"""Encloses untrusted text in tags that the text cannot close. Pure."""

import re
from html import escape


def tagged(tag: str, text: str, *, name: str | None = None) -> str:
    """Returns the text between ``<tag>`` and ``</tag>``, with a ``name`` attribute if given.

    The text is unchanged, because answers quote it. If the text contains the closing tag (in any case, with any
    blanks), a number is added to the tag: ``tag-2``, or the first number whose tag the text does not close.
    """
    closing = rf"<\s*/\s*({tag}(?:-[0-9]+)?)(?![a-z0-9])"
    closed = {match[1].lower() for match in re.finditer(closing, text, re.IGNORECASE)}
    number, fence = 1, tag
    while fence in closed:
        number += 1
        fence = f"{tag}-{number}"
    named = "" if name is None else f' name="{escape(name)}"'
    return f"<{fence}{named}>\n{text}\n</{fence}>"
