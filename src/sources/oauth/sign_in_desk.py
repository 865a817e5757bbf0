"""Pending sign-ins of all sources: the links that start one, and the redirect that ends it.

A **ticket** is a one-time link for one principal and source. The ``state`` of an authorization request belongs to one
sign-in and is valid for one redirect. If the sign-in began on a page of the daemon, it also belongs to one browser.
"""

import hmac
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import structlog

from ...protocol.error_codes import CallError, InvalidArgumentsError, NotFoundError, ServiceUnavailableError
from ...protocol.terminal_text import one_line
from ...tools import SecretUnavailableError
from .oauth_exchange import ask_for_token, authorization_url, find_client, issuer_path, new_verifier
from .oauth_settings import is_confidential_url
from .sign_in_values import DAEMON, OAuthClient, OAuthFailedError, SignInNeededError, error_code
from .sign_ins import MemorySignIns, SignInStore, SourceSignIns, new_sign_in

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .oauth_discovery import AuthorizationServer

SIGN_IN_S: Final = 600.0
"""The time for which a link is valid, and the time in which a person must sign in."""
MAX_PENDING: Final = 1000
"""The maximum number of links, and of sign-ins that wait for their redirect. Beyond it, the oldest is dropped."""
SIGN_IN_PATH: Final = "/oauth/sign-in/"
CALLBACK_PATH: Final = "/oauth/callback"
_MAX_CODE_CHARS: Final = 8192

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SignInTicket:
    """A link that starts a sign-in."""

    sign_ins: SourceSignIns
    principal: str
    ends_at: float


@dataclass(frozen=True, slots=True)
class _PendingSignIn:
    sign_ins: SourceSignIns
    principal: str
    server: "AuthorizationServer"
    client: OAuthClient
    redirect_uri: str
    issuer_path: str
    """The last part of the redirect's path."""
    verifier: str
    scopes: tuple[str, ...]
    browser: str | None
    ends_at: float


class SignInDesk:
    """Starts and ends the sign-ins of people."""

    def __init__(self, store: SignInStore | None = None, origin: Callable[[], str] = lambda: "") -> None:
        """``origin`` returns the origin of the daemon's HTTP port as users' browsers reach it."""
        self.store: SignInStore = MemorySignIns() if store is None else store
        self._origin = origin
        self._sources: dict[str, SourceSignIns] = {}
        self._tickets: dict[str, SignInTicket] = {}
        self._pending: dict[str, _PendingSignIn] = {}
        self._clients: dict[tuple[str, str, str], OAuthClient] = {}

    def __repr__(self) -> str:
        return f"<SignInDesk of {', '.join(self._sources) or 'nothing'}>"

    def add(self, sign_ins: SourceSignIns) -> None:
        """Adds the sign-ins of a source; they replace those of its earlier settings."""
        self._sources[sign_ins.source] = sign_ins

    def remove(self, sign_ins: SourceSignIns) -> None:
        """Removes the sign-ins of a source, unless newer ones have replaced them."""
        if self._sources.get(sign_ins.source) is sign_ins:
            del self._sources[sign_ins.source]

    def needed(self, sign_ins: SourceSignIns, principal: str, why: str) -> SignInNeededError:
        """Returns the error of a call whose principal has to sign in. An unused earlier link is repeated."""
        now, tickets = time.monotonic(), self._tickets
        for key in [key for key, ticket in tickets.items() if ticket.ends_at <= now]:
            del tickets[key]
        known = (
            key for key, ticket in tickets.items() if ticket.principal == principal and ticket.sign_ins is sign_ins
        )
        key = next(known, "")
        if not key:
            key = secrets.token_urlsafe(24)
            _put(tickets, key, SignInTicket(sign_ins, principal, now + SIGN_IN_S))
        return SignInNeededError(sign_ins.source, why, f"{self._origin()}{SIGN_IN_PATH}{key}")

    def needs_person(self, source: str) -> bool:
        """Whether a source uses OAuth with a grant that needs a person."""
        signs = self._sources.get(source)
        return signs is not None and signs.auth.grant != "client_credentials"

    def daemon_link(self, source: str) -> str:
        """The link to a page that begins the daemon's own sign-in at a source.

        Raises:
            NotFoundError: no such source has OAuth.
            InvalidArgumentsError: the source needs no sign-in.
        """
        signs = self._named(source)
        if not self.needs_person(source):
            raise InvalidArgumentsError(
                f"{source} has the grant client_credentials: the daemon gets tokens automatically."
            )
        return self.needed(signs, DAEMON, "").url

    def ticket(self, key: str) -> SignInTicket | None:
        """The ticket of a link, if it is still valid; reading it does not use it up."""
        ticket = self._tickets.get(key)
        return None if ticket is None or ticket.ends_at <= time.monotonic() else ticket

    async def use_ticket(self, key: str, browser: str) -> str:
        """Starts the sign-in of a link, which is then used up; returns the URL for the browser. ``browser`` is a secret
        that only this browser has.

        Raises:
            NotFoundError: the link is used or too old.
            ServiceUnavailableError: the authorization server cannot be used.
        """
        ticket = self.ticket(key)
        if ticket is None:
            raise NotFoundError("This link was used or is too old. Make the call again for a new one.")
        del self._tickets[key]
        return await self._begin(ticket.sign_ins, ticket.principal, f"{self._origin()}{CALLBACK_PATH}", browser)

    async def begin_daemon(self, source: str, redirect_uri: str) -> str:
        """Starts the daemon's own sign-in to a source; returns the link for the operator's browser.

        Raises:
            NotFoundError: no such source has OAuth.
            InvalidArgumentsError: the source needs no sign-in, or the redirect does not lead to this machine.
            ServiceUnavailableError: the authorization server cannot be used.
        """
        sign_ins = self._named(source)
        if sign_ins.auth.grant == "client_credentials":
            raise InvalidArgumentsError(
                f"{source} has the grant client_credentials: the daemon gets tokens automatically."
            )
        parts = urlsplit(redirect_uri)
        if parts.scheme != "http" or not is_confidential_url(redirect_uri) or len(redirect_uri) > 200:
            raise InvalidArgumentsError("The redirect_uri must be http:// on a loopback address.")
        return await self._begin(sign_ins, DAEMON, redirect_uri, None)

    async def finish(self, answer: dict[str, str], browser: str | None) -> tuple[SourceSignIns, str]:
        """Ends a sign-in with the query of its redirect; returns the source's sign-ins and the principal.

        Raises:
            InvalidArgumentsError: the answer belongs to no pending sign-in, or does not come from the authorization
            server.
            ServiceUnavailableError: the authorization server issued no token.
        """
        pending = self._pending.pop(answer.get("state", ""), None)
        if pending is None or pending.ends_at <= time.monotonic():
            raise InvalidArgumentsError(
                "This sign-in was ended before, is too old, or was not started here; start again."
            )
        if pending.browser is not None and not hmac.compare_digest(pending.browser, browser or ""):
            raise InvalidArgumentsError("This sign-in was started in another browser; start again in this one.")
        server, sign_ins = pending.server, pending.sign_ins
        issuer = answer.get("iss")
        if issuer != server.issuer and (issuer is not None or server.sends_iss):
            raise InvalidArgumentsError("This answer does not come from the sign-in's authorization server (iss).")
        if answer.get("issuer_path", "") != pending.issuer_path:
            raise InvalidArgumentsError("This answer came to the redirect address of another authorization server.")
        if "error" in answer:
            code = error_code(answer["error"]) or "it does not say why"
            raise InvalidArgumentsError(f"The authorization server refuses the sign-in ({code}).")
        code = answer.get("code", "")
        if not 0 < len(code) <= _MAX_CODE_CHARS:
            raise InvalidArgumentsError("This answer has no code.")
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": server.resource,
        }
        try:
            secret = await sign_ins.client_secret(pending.client)
            tokens = await ask_for_token(sign_ins.http, server.token_endpoint, pending.client, secret, form)
        except (OAuthFailedError, SecretUnavailableError) as error:
            raise _failed(sign_ins.source, error) from None
        await sign_ins.keep(
            pending.principal, new_sign_in(sign_ins.url, server, pending.client, pending.scopes, tokens)
        )
        _log.info("signed in", source=sign_ins.source, principal=pending.principal)
        return sign_ins, pending.principal

    async def sign_out(self, source: str, principal: str) -> bool:
        """Removes the sign-in of a principal; False if there was none.

        Raises:
            NotFoundError: no such source has OAuth.
        """
        return await self._named(source).forget(principal)

    def _named(self, source: str) -> SourceSignIns:
        sign_ins = self._sources.get(source)
        if sign_ins is None:
            names = ", ".join(self._sources) or "none"
            raise NotFoundError(f'No source {one_line(source, 80)!r} has auth with type = "oauth"; with it: {names}.')
        return sign_ins

    async def _begin(self, sign_ins: SourceSignIns, principal: str, redirect_uri: str, browser: str | None) -> str:
        try:
            server = await sign_ins.server()
            scopes = await sign_ins.scopes(principal, server.scopes, offline_access=server.offline_access)
            path = issuer_path(server, sign_ins.auth)
            redirect_uri = f"{redirect_uri}/{path}" if path else redirect_uri
            client = await self._client(sign_ins, server, redirect_uri, scopes)
        except (OAuthFailedError, SecretUnavailableError) as error:
            raise _failed(sign_ins.source, error) from None
        state, verifier = secrets.token_urlsafe(32), new_verifier()
        ends_at = time.monotonic() + SIGN_IN_S
        pending = _PendingSignIn(
            sign_ins, principal, server, client, redirect_uri, path, verifier, scopes, browser, ends_at
        )
        _put(self._pending, state, pending)
        return authorization_url(
            server, client, redirect_uri=redirect_uri, state=state, verifier=verifier, scopes=scopes
        )

    async def _client(
        self, sign_ins: SourceSignIns, server: "AuthorizationServer", redirect_uri: str, scopes: tuple[str, ...]
    ) -> OAuthClient:
        """The client for this redirect, which is registered once per run of the daemon."""
        key = (sign_ins.source, server.issuer, redirect_uri)
        client = self._clients.get(key)
        if client is None or (client.expires_at is not None and client.expires_at <= time.time()):
            client = await find_client(sign_ins.http, server, sign_ins.auth, redirect_uri, scopes)
            if sign_ins.auth.client_id is None:
                _put(self._clients, key, client)
        return client


def _put(kept: dict[Any, Any], key: Any, value: Any) -> None:
    while len(kept) >= MAX_PENDING:
        del kept[next(iter(kept))]
    kept[key] = value


def _failed(source: str, error: Exception) -> CallError:
    _log.warning("sign-in failed", source=source, reason=str(error))
    return ServiceUnavailableError(f"Signing in to {source} failed: {error}.", executed="no")
