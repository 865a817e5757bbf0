"""Who may speak MCP over HTTP, and in which form: what is refused before a message is read. Pure."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ....protocol.authorization import Authenticate, Authorization, AuthorizationDenied
from ....protocol.daemon_address import is_loopback

METHODS: Final = "POST"

_MEDIA_RANGE: Final = re.compile(r"\s*([^;,\s]+)\s*(?:;[^,]*)?(?:,|$)")
_STATUS: Final[Mapping[str, int]] = {"missing": 401, "invalid": 401, "insufficient_scope": 403, "unavailable": 503}


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """The request ends with this HTTP status."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


class RequestAdmitted(msgspec.Struct, frozen=True, gc=False):
    """The request may be read."""

    access: Authorization
    streams: bool
    """The client takes an event stream for an answer."""


async def admit(
    method: str,
    headers: Mapping[str, str],
    *,
    scheme: str,
    authenticate: Authenticate,
    origins: tuple[str, ...],
    metadata: str | None = None,
) -> RequestAdmitted | RequestRefused:
    """Judge a request by its method and headers, whose names are lower-case.

    ``origins`` are those of other sites' pages that may ask; ``metadata`` is the address that tells where tokens come
    from, where an issuer gives them.
    """
    if not _is_welcome(headers, scheme, origins):
        return RequestRefused(
            403, "Pages of this Origin may not ask here; the operator allows them with allowed_origins."
        )
    kind, _, token = headers.get("authorization", "").partition(" ")
    access = await authenticate(token.strip() if kind.lower() == "bearer" else None)
    if isinstance(access, AuthorizationDenied):
        return denied(access, metadata)
    if method != "POST":
        # A server that has no stream to listen to, and no session to end, says so with 405.
        message = "There is no stream to GET and no session to DELETE here; POST each message."
        return RequestRefused(405, message, (("allow", METHODS),))
    if not _is_json(headers.get("content-type", "")):
        return RequestRefused(415, "Send the message as Content-Type: application/json.")
    if headers.get("content-encoding", "identity").lower() != "identity":
        return RequestRefused(
            415, "Send the message as it is, without Content-Encoding.", (("accept-encoding", "identity"),)
        )
    takes_json, takes_events = _taken(headers.get("accept", "*/*"))
    if not takes_json:
        return RequestRefused(406, "Answers are JSON or event streams: Accept: application/json, text/event-stream.")
    return RequestAdmitted(access, takes_events)


def _is_welcome(headers: Mapping[str, str], scheme: str, origins: tuple[str, ...]) -> bool:
    """Whether no page asks, or one of this very server, or one of a site that the operator allows."""
    origin = headers.get("origin")
    if origin is None or origin in origins:
        return True
    try:
        parts = urlsplit(origin)
        name = parts.hostname or ""
    except ValueError:
        return False
    same = parts.scheme == scheme and parts.netloc.lower() == headers.get("host", "").lower() != ""
    return same and _cannot_be_rebound(name)


def _cannot_be_rebound(name: str) -> bool:
    """Whether no page's own name can have been pointed at this server: where it was, page and server have one origin,
    and a browser lets the page read the answers. The operator names other names with ``allowed_origins``.
    """
    if is_loopback(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def denied(why: AuthorizationDenied, metadata: str | None) -> RequestRefused:
    """The answer to who is not let in, with the challenge that HTTP has for it (RFC 6750, RFC 9728)."""
    status = _STATUS[why.reason]
    if why.reason == "unavailable":
        return RequestRefused(status, why.message, (("retry-after", "5"),))
    parts = ['realm="toold"']
    if why.reason == "missing":
        message = "Send the daemon's token: Authorization: Bearer …; `toold token` prints it."
    else:
        message = f"The token is {why.message}"
        parts.append(f'error="{"invalid_token" if status == 401 else "insufficient_scope"}"')
    if why.scope:
        parts.append(f'scope="{why.scope}"')
    if metadata is not None:
        parts.append(f'resource_metadata="{metadata}"')
    return RequestRefused(status, message, (("www-authenticate", "Bearer " + ", ".join(parts)),))


def _is_json(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == "application/json"


@lru_cache(maxsize=64)
def _taken(accept: str) -> tuple[bool, bool]:
    """Whether a client takes JSON for an answer, and whether it takes events. Each sends the same with each request."""
    kinds = {kind.lower() for kind in _MEDIA_RANGE.findall(accept)}
    json, events = {"application/json", "application/*", "*/*"}, {"text/event-stream", "text/*", "*/*"}
    return bool(kinds & json), bool(kinds & events)
