"""Somebody's text within a question, between tags that it cannot end. Pure."""

import re
from html import escape


def tagged(tag: str, text: str, *, name: str | None = None) -> str:
    """The text between ``<tag>`` and ``</tag>``, with a ``name`` if given.

    The text stays as it is, since answers quote it. Where it has the closing tag in it, in whatever capitals and with
    whatever blanks, the tag is another: ``tag-2``, or the first number that the text does not close.
    """
    closing = rf"<\s*/\s*({tag}(?:-[0-9]+)?)(?![a-z0-9])"
    closed = {found[1].lower() for found in re.finditer(closing, text, re.IGNORECASE)}
    number, fence = 1, tag
    while fence in closed:
        number += 1
        fence = f"{tag}-{number}"
    named = "" if name is None else f' name="{escape(name)}"'
    return f"<{fence}{named}>\n{text}\n</{fence}>"
