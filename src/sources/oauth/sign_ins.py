"""The tokens of one source: finds them, renews them before they expire, and reports their problems."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import msgspec
import structlog

from ...protocol.error_codes import CallError
from ...protocol.terminal_text import one_line
from ...tools import SecretUnavailableError
from ...version import install_extra
from .oauth_exchange import RefusedGrantError, ask_for_token, lifetime_s
from .oauth_http import OAuthHttp
from .oauth_settings import MAX_SCOPES, OAuthAuth
from .sign_in_values import OAuthClient, OAuthFailedError, SignIn, TokenAnswer, TokenUnavailableError

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .oauth_discovery import AuthorizationServer

RENEW_S: Final = 60.0
"""A token is renewed this long before it expires, or in the last fifth of a shorter lifetime."""
RETRY_S: Final = 5.0
"""After a failed renewal, requests fail at once for this time, so that they do not wait for an unresponsive server."""
MAX_ENDED: Final = 1000
"""The maximum number of principals whose ended sign-ins and demanded scopes are remembered."""

_CHALLENGE: Final = re.compile(r'(?:^|[\s,])([a-z_]+)\s*=\s*(?:"([^"]{0,4000})"|([^\s,"]{1,4000}))', re.IGNORECASE)

_log = structlog.get_logger(__name__)


class SignInStore(Protocol):
    """Stores sign-ins, encrypted. Each method raises ``CallError`` if it fails."""

    async def read(self, principal: str, source: str) -> str | None: ...

    async def write(self, principal: str, source: str, sign_in: str) -> None: ...

    async def remove(self, principal: str, source: str) -> bool: ...


class MemorySignIns:
    """Implements ``SignInStore`` in memory, for checks of sources, which store nothing."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], str] = {}

    async def read(self, principal: str, source: str) -> str | None:
        return self._kept.get((principal, source))

    async def write(self, principal: str, source: str, sign_in: str) -> None:
        self._kept[principal, source] = sign_in

    async def remove(self, principal: str, source: str) -> bool:
        return self._kept.pop((principal, source), None) is not None


class Challenge(NamedTuple):
    """The content of ``WWW-Authenticate`` when a server refuses a request (RFC 6750, RFC 9728)."""

    error: str | None = None
    scopes: tuple[str, ...] = ()
    document_url: str | None = None


def read_challenge(header: str) -> Challenge:
    """Returns the parts of ``WWW-Authenticate`` that a sign-in needs."""
    parts = {name.lower(): quoted or plain for name, quoted, plain in _CHALLENGE.findall(header[:16_000])}
    scopes = tuple(dict.fromkeys(parts.get("scope", "").split()))[:MAX_SCOPES]
    return Challenge(parts.get("error"), scopes, parts.get("resource_metadata"))


class SourceSignIns:
    """The sign-ins to one source."""

    def __init__(self, source: str, url: str, auth: OAuthAuth, http: OAuthHttp, store: SignInStore) -> None:
        self.source = source
        self.url = url
        self.auth = auth
        self.http = http
        self.challenge = Challenge()
        """The latest one that the server sent, for the next sign-in."""
        self._store = store
        self._renewals: dict[str, asyncio.Task[SignIn | None]] = {}
        self._failures: dict[str, tuple[float, str]] = {}
        self._ended: dict[str, str] = {}
        self._demanded: dict[str, tuple[str, ...]] = {}
        self._held: SignIn | None = None
        """The daemon's own sign-in by client credentials, which is not stored."""

    def __repr__(self) -> str:
        return f"<SourceSignIns {self.source}>"

    async def current(self, principal: str) -> SignIn | None:
        """The sign-in whose token has not expired; None if there is none.

        Raises:
            TokenUnavailableError: the token has expired and cannot be renewed now.
        """
        sign_in = await self._find(principal)
        if sign_in is not None and not _is_ending(sign_in, time.time()):
            return sign_in
        by_itself = self.auth.grant == "client_credentials"
        if not by_itself and (sign_in is None or sign_in.refresh_token is None):
            if sign_in is None or not _has_ended(sign_in, time.time()):
                return sign_in
            self.end(principal, "its token has expired, and cannot be renewed")
            return None
        try:
            return await self.renewed(principal, sign_in)
        except TokenUnavailableError:
            if sign_in is not None and not _has_ended(sign_in, time.time()):
                return sign_in  # still usable; the next request tries to renew it
            raise

    async def renewed(self, principal: str, used: SignIn | None) -> SignIn | None:
        """The sign-in with another token than ``used``; None if the person must sign in again.

        At most one renewal runs per principal. It completes even if its caller is cancelled, because a refresh token
        may be valid only once.

        Raises:
            TokenUnavailableError: the token cannot be renewed now.
        """
        running = self._renewals.get(principal)
        if running is None:
            latest = await self._find(principal)
            if latest is not None and (used is None or latest.access_token != used.access_token):
                return latest  # renewed meanwhile
            failed_at, why = self._failures.get(principal, (-RETRY_S, ""))
            if time.monotonic() - failed_at < RETRY_S:
                raise TokenUnavailableError(why)
            running = self._renewals.get(principal)
        if running is None:
            running = asyncio.create_task(self._renew(principal, used), name=f"sign-in of {self.source}")
            self._renewals[principal] = running
            running.add_done_callback(lambda _: self._renewals.pop(principal, None))
        await asyncio.wait([running])
        return running.result()

    async def keep(self, principal: str, sign_in: SignIn) -> None:
        """Stores a new sign-in, which replaces the earlier one."""
        if self.auth.grant == "client_credentials":
            self._held = sign_in
        else:
            await self._store.write(principal, self.source, msgspec.json.encode(sign_in).decode())
        self._ended.pop(principal, None)
        self._failures.pop(principal, None)

    async def forget(self, principal: str) -> bool:
        """Removes the sign-in of a principal; False if there was none."""
        self._ended.pop(principal, None)
        self._demanded.pop(principal, None)
        return await self._store.remove(principal, self.source)

    def demand(self, principal: str, scopes: Sequence[str]) -> None:
        """Records scopes that the server demands of this principal, for the next sign-in."""
        more = (*self._demanded.pop(principal, ()), *scopes)
        self._demanded[principal] = tuple(dict.fromkeys(more))[:MAX_SCOPES]
        _bound(self._demanded)

    async def scopes(self, principal: str, offered: Sequence[str], *, offline_access: bool) -> tuple[str, ...]:
        """The scopes to request. They include the scopes granted so far, so that one demand does not undo another."""
        wanted = self.auth.scopes or self.challenge.scopes or tuple(offered)
        demanded = self._demanded.get(principal, ())
        if demanded:
            before = await self._find(principal)
            wanted = (*(() if before is None else before.scopes), *wanted, *demanded)
        if offline_access and wanted:
            wanted = (*wanted, "offline_access")
        return tuple(dict.fromkeys(wanted))[:MAX_SCOPES]

    def reason(self, principal: str) -> str:
        """Why there is no sign-in, as a clause."""
        demanded = " ".join(self._demanded.get(principal, ()))
        if demanded:
            return f"the server demands the scope {one_line(demanded, 200)}"
        return self._ended.get(principal, "there is none yet")

    def end(self, principal: str, why: str) -> None:
        """Records why a sign-in can no longer be used."""
        self._ended.pop(principal, None)
        self._ended[principal] = why
        _bound(self._ended)

    async def close(self) -> None:
        """Waits for running renewals."""
        if self._renewals:
            await asyncio.wait(list(self._renewals.values()))

    async def _find(self, principal: str) -> SignIn | None:
        if self.auth.grant == "client_credentials":
            return self._held
        try:
            kept = await self._store.read(principal, self.source)
        except CallError as error:
            raise TokenUnavailableError(error.message.rstrip(".")) from None
        if kept is None:
            return None
        try:
            sign_in = msgspec.json.decode(kept, type=SignIn)
        except msgspec.DecodeError:
            return None
        return sign_in if self._is_of_settings(sign_in) else None

    def _is_of_settings(self, sign_in: SignIn) -> bool:
        """Whether the settings still name the server and the client of this sign-in."""
        auth = self.auth
        return (
            sign_in.url == self.url
            and auth.issuer in {None, sign_in.issuer, sign_in.issuer.rstrip("/")}
            and auth.client_id in {None, sign_in.client.id}
        )

    async def _renew(self, principal: str, used: SignIn | None) -> SignIn | None:
        try:
            if self.auth.grant == "client_credentials":
                return await self._client_credentials(principal)
            if used is None or used.refresh_token is None:
                return None
            return await self._refresh(principal, used)
        except (OAuthFailedError, SecretUnavailableError, CallError) as error:
            why = f"its sign-in cannot be renewed: {getattr(error, 'message', error)}"
            self._failures[principal] = (time.monotonic(), why)
            _bound(self._failures)
            _log.warning("sign-in cannot be renewed", source=self.source, reason=why)
            raise TokenUnavailableError(why) from None

    async def _refresh(self, principal: str, used: SignIn) -> SignIn | None:
        form = {"grant_type": "refresh_token", "refresh_token": used.refresh_token, "resource": used.resource}
        try:
            secret = await self.client_secret(used.client)
            answer = await ask_for_token(self.http, used.token_endpoint, used.client, secret, form)
        except RefusedGrantError as error:
            if error.code not in {"invalid_grant", "invalid_client", "unauthorized_client", "HTTP 401"}:
                raise
            if (newer := await self._newer(principal, used)) is not None:
                return newer
            self.end(principal, f"it has ended ({error.code})")
            await self._store.remove(principal, self.source)
            _log.warning("sign-in has ended", source=self.source, reason=error.code)
            return None
        if (newer := await self._newer(principal, used)) is not None:
            return newer
        renewed = renewed_sign_in(used, answer)
        await self.keep(principal, renewed)
        return renewed

    async def _newer(self, principal: str, used: SignIn) -> SignIn | None:
        """The sign-in that a person has made during a renewal of ``used``. It replaces the outcome of the renewal."""
        latest = await self._find(principal)
        return None if latest is None or latest.access_token == used.access_token else latest

    async def _client_credentials(self, principal: str) -> SignIn:
        server = await self.server()
        client_id = self.auth.client_id or ""
        methods = [name for name in ("client_secret_basic", "client_secret_post") if name in server.auth_methods]
        client = OAuthClient(client_id, methods[0] if methods else "client_secret_post")
        scopes = await self.scopes(principal, server.scopes, offline_access=False)
        form = {
            "grant_type": "client_credentials",
            "scope": " ".join(scopes) or None,
            "resource": server.resource,
        }
        answer = await ask_for_token(self.http, server.token_endpoint, client, await self.client_secret(client), form)
        sign_in = new_sign_in(self.url, server, client, scopes, answer)
        await self.keep(principal, sign_in)
        return sign_in

    async def server(self) -> "AuthorizationServer":
        """The authorization server, according to the current metadata of the source's server and of itself.

        Raises:
            OAuthFailedError: there is no usable authorization server.
        """
        discover = await asyncio.to_thread(_discovery)
        return await discover(self.http, self.url, self.challenge.document_url, self.auth)

    async def client_secret(self, client: OAuthClient) -> str | None:
        """The secret of the client: the current one of the settings, or the registered one.

        Raises:
            SecretUnavailableError: the secret cannot be read.
        """
        configured = self.auth.client_secret
        if configured is not None:
            return await asyncio.to_thread(configured.secret.read_header_value)
        return client.secret


def _discovery() -> "Callable[..., Awaitable[AuthorizationServer]]":
    """Returns ``oauth_discovery.discover``.

    Raises:
        OAuthFailedError: the MCP SDK is not installed.
    """
    try:
        from . import oauth_discovery  # noqa: PLC0415 - takes a second; imported in a thread
    except ImportError as error:
        raise OAuthFailedError(f"the MCP SDK is not installed ({error.name}); {install_extra('mcp')}") from None
    return oauth_discovery.discover


def new_sign_in(
    url: str, server: "AuthorizationServer", client: OAuthClient, scopes: Sequence[str], answer: TokenAnswer
) -> SignIn:
    """The sign-in after the first answer of the token endpoint; ``scopes`` are those asked for."""
    lifetime = lifetime_s(answer)
    return SignIn(
        url,
        server.issuer,
        server.token_endpoint,
        server.resource,
        client,
        answer.access_token,
        answer.refresh_token,
        None if lifetime is None else time.time() + lifetime,
        lifetime,
        tuple(answer.scope.split()[:MAX_SCOPES]) if answer.scope else tuple(scopes),
    )


def renewed_sign_in(used: SignIn, answer: TokenAnswer) -> SignIn:
    """The sign-in after a renewal. Values that the answer omits stay (RFC 6749, 6)."""
    lifetime = lifetime_s(answer)
    return msgspec.structs.replace(
        used,
        access_token=answer.access_token,
        refresh_token=answer.refresh_token or used.refresh_token,
        expires_at=None if lifetime is None else time.time() + lifetime,
        lifetime_s=lifetime,
        scopes=tuple(answer.scope.split()[:MAX_SCOPES]) if answer.scope else used.scopes,
    )


def _has_ended(sign_in: SignIn, now: float) -> bool:
    return sign_in.expires_at is not None and now >= sign_in.expires_at


def _is_ending(sign_in: SignIn, now: float) -> bool:
    if sign_in.expires_at is None or sign_in.lifetime_s is None:
        return False
    return now >= sign_in.expires_at - min(RENEW_S, sign_in.lifetime_s / 5)


def _bound(remembered: dict[str, Any]) -> None:
    while len(remembered) > MAX_ENDED:
        del remembered[next(iter(remembered))]
