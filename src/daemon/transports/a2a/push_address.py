"""Decides which addresses may be notified. The HTTP client's parser reads them, so the checked host is the host that is
connected."""

import re
from fnmatch import fnmatchcase
from typing import Final

import httpx

from ....protocol.a2a.a2a_error import invalid_field

_HOST: Final = re.compile(r"[a-z0-9._-]+|[0-9a-f:.]+")
"""A DNS name or an IP address, as httpx writes it: in lower case, without brackets."""
_LAST_PORT: Final = 65535


def push_address(url: str, hosts: tuple[str, ...]) -> httpx.URL:
    """Parses the URL of a configuration. ``hosts``: as in the setting ``a2a_push_hosts``.

    Raises:
        A2AError: it is not a URL with a valid host, or its host is not allowed.
    """
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, ValueError):
        raise invalid_field("url", "must be a URL with https:// and a valid host") from None
    host = host_of(parsed)
    fits = parsed.scheme in {"https", "http"} and (parsed.port is None or 0 < parsed.port <= _LAST_PORT)
    if not fits or parsed.userinfo or parsed.fragment or not _HOST.fullmatch(host):
        raise invalid_field("url", "must be a URL with https:// and a valid host, without a password and a fragment")
    if not any(fnmatchcase(host, pattern) for pattern in hosts):
        raise invalid_field("url", f"has the host {host!r}, which the operator has not allowed")
    if parsed.scheme != "https" and host not in hosts:
        raise invalid_field("url", "must begin with https://")
    return parsed


def host_of(url: httpx.URL) -> str:
    """The host to connect to; an international name in its ASCII form."""
    return url.raw_host.decode("ascii")


def stored_host(url: str) -> str:
    """The host of a stored address; empty if the address is not valid."""
    try:
        return host_of(httpx.URL(url))
    except (httpx.InvalidURL, ValueError):
        return ""
