"""Divides HTML into texts and tags, in time linear in its length, whatever it contains. Pure."""

import re
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

_HIDDEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})
"""Elements whose content the page does not show."""
INLINE: Final = frozenset(
    {
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "del", "dfn", "em", "font", "i", "img", "ins", "kbd", "label",
        "mark", "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr",
    }
)  # fmt: skip
"""Elements that do not end a line."""
_TAG_NAME: Final = re.compile(r"/?([A-Za-z][A-Za-z0-9]{0,31})")


class HtmlToken(NamedTuple):
    """A piece of HTML."""

    kind: Literal["text", "open", "close", "title"]
    value: str
    """The text with its character references, or the element's name in lower case."""
    place: int
    """Where it begins."""


def html_tokens(source: str) -> Iterator[HtmlToken]:
    """Yields the texts and tags of a page. What follows an unfinished tag, comment or hidden element is left out."""
    lower = source.lower() if len(source.lower()) == len(source) else source
    place = 0
    while place < len(source):
        tag = source.find("<", place)
        if tag < 0:
            yield HtmlToken("text", source[place:], place)
            return
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
        elif end == tag + 1:
            yield HtmlToken("text", "<", tag)
        place = end


def _end_of_tag(source: str, tag: int) -> int | None:
    """Where the tag or comment ends that begins here; after the ``<`` if it is neither; None if it has no end."""
    if source.startswith("<!--", tag):
        end, length = source.find("-->", tag + 4), 3
    elif source.startswith(("<!", "<?"), tag) or _TAG_NAME.match(source, tag + 1):
        end, length = source.find(">", tag), 1
    else:
        return tag + 1
    return None if end < 0 else end + length
