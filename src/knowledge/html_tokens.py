"""Divides HTML into texts and tags, in time linear in the length of any text. Pure."""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

_HIDDEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})
"""Elements whose content a page does not show."""
INLINE: Final = frozenset(
    {
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label",
        "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    }
)  # fmt: skip
"""Elements that do not end a line."""
_TAG_NAME: Final = re.compile(r"/?([A-Za-z][A-Za-z0-9]{0,31})")
_TAG: Final = re.compile(r"<(?=/?[A-Za-z]|[!?])")
"""Matches the beginning of a tag or comment. Any other ``<`` is part of the text; a token for each of a million took
five seconds.
"""


class HtmlToken(NamedTuple):
    """A piece of HTML."""

    kind: Literal["text", "open", "close", "title"]
    value: str
    """The text, including character references, or the element's name in lower case."""
    place: int
    """The offset at which the token begins."""


def html_tokens(source: str) -> Iterator[HtmlToken]:
    """Yields the texts and tags of a page. Omits everything after an unfinished tag, comment or hidden element."""
    lower = source.lower() if len(source.lower()) == len(source) else source
    place = 0
    while place < len(source):
        begin = _TAG.search(source, place)
        if begin is None:
            yield HtmlToken("text", source[place:], place)
            return
        tag = begin.start()
        if tag > place:
            yield HtmlToken("text", source[place:tag], place)
        end = _end_of_tag(source, tag)
        if end is None:
            return
        name = _TAG_NAME.match(source, tag + 1)
        if name is not None:
            element, closes = name[1].lower(), source[tag + 1] == "/"
            yield HtmlToken("close" if closes else "open", element, tag)
            if not closes and (element in _HIDDEN or element == "title"):
                close = lower.find(f"</{element}", end)
                if close < 0:
                    return
                if element == "title":
                    yield HtmlToken("title", source[end:close], end)
                end = close
        place = end


def _end_of_tag(source: str, tag: int) -> int | None:
    """The end of the tag or comment that begins here; None if it has no end."""
    comment = source.startswith("<!--", tag)
    end = source.find("-->", tag + 4) if comment else source.find(">", tag)
    return None if end < 0 else end + (3 if comment else 1)
