"""Checks requests of the HTTP port by method and headers, before their body is read. Pure."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

import msgspec

from ...protocol.authorization import Authenticate, Authorization, AuthorizationDenied, on_behalf
from ...protocol.daemon_address import is_loopback
from ...protocol.user_credential import USER_HEADER

METHODS: Final = "POST, GET, DELETE"

_MEDIA_RANGE: Final = re.compile(r"\s*([^;,\s]+)\s*(?:;[^,]*)?(?:,|$)")
_STATUS: Final[Mapping[str, int]] = {"missing": 401, "invalid": 401, "insufficient_scope": 403, "unavailable": 503}


@dataclass(frozen=True, slots=True)
class RequestRefused:
    """A rejected request: its HTTP status, message and headers."""

    status: int
    message: str
    headers: tuple[tuple[str, str], ...] = ()


class RequestAdmitted(msgspec.Struct, frozen=True, gc=False):
    """An admitted request."""

    access: Authorization
    streams: bool
    """The client accepts an event stream as the response."""


async def admit(
    method: str,
    headers: Mapping[str, str],
    *,
    scheme: str,
    authenticate: Authenticate,
    origins: tuple[str, ...],
    metadata: str | None = None,
) -> RequestAdmitted | RequestRefused:
    """Checks an MCP request by its method and its headers, whose names are lower-case.

    ``origins`` are the allowed origins of other sites' pages; ``metadata`` is the URL of the OAuth metadata, if an
    issuer is configured.
    """
    access = await authorize(headers, scheme=scheme, authenticate=authenticate, origins=origins, metadata=metadata)
    if isinstance(access, RequestRefused):
        return access
    if method == "GET" and not _accepted(headers.get("accept", ""))[1]:
        return RequestRefused(406, "GET opens a stream of notifications: send Accept: text/event-stream.")
    if method in {"GET", "DELETE"}:
        return RequestAdmitted(access, streams=True)
    if method != "POST":
        return RequestRefused(405, "POST each message; GET opens a stream of notifications.", (("allow", METHODS),))
    unreadable = refuse_content(headers)
    if unreadable is not None:
        return unreadable
    accepts_json, accepts_events = _accepted(headers.get("accept", "*/*"))
    if not accepts_json:
        return RequestRefused(406, "Responses are JSON or events: send Accept: application/json, text/event-stream.")
    return RequestAdmitted(access, accepts_events)


async def authorize(
    headers: Mapping[str, str],
    *,
    scheme: str,
    authenticate: Authenticate,
    origins: tuple[str, ...],
    metadata: str | None = None,
) -> Authorization | RequestRefused:
    """Returns the authorization of a request's sender. The arguments are as for ``admit``."""
    if not _is_allowed_origin(headers, scheme, origins):
        return RequestRefused(
            403, "Requests from pages of this Origin are not allowed; the operator can add it to allowed_origins."
        )
    kind, _, token = headers.get("authorization", "").partition(" ")
    access = await authenticate(token.strip() if kind.lower() == "bearer" else None)
    access = on_behalf(access, headers.get(USER_HEADER))
    return denied(access, metadata) if isinstance(access, AuthorizationDenied) else access


def refuse_content(
    headers: Mapping[str, str], accepted: tuple[str, ...] = ("application/json",)
) -> RequestRefused | None:
    """Refuses a body that is not plain JSON, by its headers. ``accepted`` has the allowed media types."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() not in accepted:
        return RequestRefused(415, "Send the message as Content-Type: application/json.")
    if headers.get("content-encoding", "identity").lower() != "identity":
        return RequestRefused(415, "Send the message without Content-Encoding.", (("accept-encoding", "identity"),))
    return None


def _is_allowed_origin(headers: Mapping[str, str], scheme: str, origins: tuple[str, ...]) -> bool:
    """Whether the request comes from no page, from a page of this server, or from an allowed origin."""
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
    """Whether the name is safe from DNS rebinding, which would give a page the origin of this server and let it read
    the responses. The operator allows other names with ``allowed_origins``.
    """
    if is_loopback(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def denied(denial: AuthorizationDenied, metadata: str | None) -> RequestRefused:
    """Returns the response to an unauthorized request, with the challenge of RFC 6750 and RFC 9728."""
    if denial.reason == "not_for_users":
        return RequestRefused(403, denial.message)
    status = _STATUS[denial.reason]
    if denial.reason == "unavailable":
        return RequestRefused(status, denial.message, (("retry-after", "5"),))
    parts = ['realm="toold"']
    if denial.reason == "missing":
        message = "Send the daemon's token: Authorization: Bearer …; `toold token` prints it."
    else:
        message = f"The token is {denial.message}"
        parts.append(f'error="{"invalid_token" if status == 401 else "insufficient_scope"}"')
    if denial.scope:
        parts.append(f'scope="{denial.scope}"')
    if metadata is not None:
        parts.append(f'resource_metadata="{metadata}"')
    return RequestRefused(status, message, (("www-authenticate", "Bearer " + ", ".join(parts)),))


def no_such_toolset(toolset: str, usable: Sequence[str], access: Authorization, metadata: str | None) -> RequestRefused:
    """Refuses a toolset that does not exist or is not one of the ``usable`` ones; ``metadata`` is as for ``admit``."""
    may_use = f"; you may use {', '.join(usable)}" if usable else "; no toolset is permitted"
    scope = dict(access.scopes).get(toolset)
    if scope is not None:
        why = f"not valid for the toolset {toolset!r}{may_use}, or request a token with the scope {scope}."
        return denied(AuthorizationDenied("insufficient_scope", why, scope), metadata)
    return RequestRefused(404, f"The toolset {toolset[:64]!r} does not exist or is not permitted{may_use}.")


@lru_cache(maxsize=64)
def _accepted(accept: str) -> tuple[bool, bool]:
    """Whether the client accepts JSON, and whether it accepts events. Cached, since clients repeat the same header."""
    kinds = {kind.lower() for kind in _MEDIA_RANGE.findall(accept)}
    json, events = {"application/json", "application/*", "*/*"}, {"text/event-stream", "text/*", "*/*"}
    return bool(kinds & json), bool(kinds & events)
