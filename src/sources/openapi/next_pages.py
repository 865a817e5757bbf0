"""Finds the link to a list's next page in an API's answer, and stores it for the caller."""

import re
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urldefrag, urljoin, urlsplit

from ...protocol.error_codes import InvalidArgumentsError
from .request_origin import origin

MAX_PAGES: Final = 256
"""The maximum number of links per principal and source. A new link replaces the oldest."""
MAX_PRINCIPALS: Final = 1_000
MAX_URL_CHARS: Final = 4_096

_LINK: Final = re.compile(r"<([^<>]*)>([^<]*)")
"""A link and its parameters (RFC 8288)."""
_RELATION: Final = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\s;,]*))", re.IGNORECASE)
_IN_BODY: Final = (
    ("next",),
    ("@odata.nextLink",),
    ("nextLink",),
    ("next_page_url",),
    ("links", "next"),
    ("_links", "next"),
    ("links", "pages", "next"),
    ("paging", "next"),
    ("meta", "nextPageUrl"),
)
"""The fields in which APIs put the URL of the next page: JSON:API, HAL, OData and common frameworks."""


def next_page_url(links: list[str], data: Any, url: str, *, without: str | None = None) -> str | None:
    """Returns the URL of the page after ``url``: from the ``Link`` headers, or else from the answer's JSON.

    None if there is no next page, or if its URL has another origin, which must not get the source's secret. ``without``
    names a query parameter to remove: the parameter with the secret, because some APIs copy it into the link.
    """
    for reference in (*_linked(links), *_in_body(data)):
        try:
            target = urldefrag(urljoin(url, reference)).url
            if origin(target) != origin(url) or len(target) > MAX_URL_CHARS or re.search(r"[\s\x00-\x1f]", target):
                continue
        except ValueError:
            continue
        target = _without_parameter(target, without)
        if target != url:
            return target
    return None


def _linked(links: list[str]) -> Iterator[str]:
    for reference, parameters in _LINK.findall(",".join(links)):
        for quoted, plain in _RELATION.findall(parameters):
            if "next" in (quoted or plain).lower().split():
                yield reference.strip()


def _in_body(data: Any) -> Iterator[str]:
    for keys in _IN_BODY:
        part = data
        for key in keys:
            part = part.get(key) if isinstance(part, dict) else None
        if isinstance(part, dict):
            part = part.get("href")
        if isinstance(part, str) and part.startswith(("https://", "http://", "/", "?")):
            yield part


def _without_parameter(url: str, name: str | None) -> str:
    parts = urlsplit(url)
    if name is None or not parts.query:
        return url
    kept = [pair for pair in parts.query.split("&") if pair.partition("=")[0] != name]
    return parts._replace(query="&".join(kept)).geturl()


class NextPages:
    """The links to next pages of one source, by names that callers send back. Only the same principal can use a link,
    and only for the same operation: links may contain bound arguments, and must not lead to other operations.
    """

    def __init__(self) -> None:
        self._by_principal: OrderedDict[str, OrderedDict[str, tuple[str, str]]] = OrderedDict()

    def keep(self, principal: str, operation: str, url: str) -> str:
        """Stores a link; returns its name."""
        pages = self._by_principal.setdefault(principal, OrderedDict())
        self._by_principal.move_to_end(principal)
        name = secrets.token_urlsafe(9)
        pages[name] = (operation, url)
        if len(pages) > MAX_PAGES:
            pages.popitem(last=False)
        if len(self._by_principal) > MAX_PRINCIPALS:
            self._by_principal.popitem(last=False)
        return name

    def url(self, principal: str, operation: str, argument: str, name: str) -> str:
        """Returns the link of this name.

        Raises:
            InvalidArgumentsError: the name is unknown, for example after a restart or after many other links.
        """
        pages = self._by_principal.get(principal)
        of_operation, url = ("", "") if pages is None else pages.get(name, ("", ""))
        if of_operation == operation:
            return url
        wrong = "is not from a recent answer of this tool; start at the first page, without this argument"
        raise InvalidArgumentsError(f"{argument} {wrong}.", details={"fields": {argument: wrong}})
