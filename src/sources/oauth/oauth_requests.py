"""What the requests to a source's server get, and what happens when the server refuses them."""

from collections.abc import Mapping
from typing import Final

from ..source_settings import McpSettings
from .oauth_http import OAuthHttp
from .oauth_settings import OAuthAuth
from .sign_in_desk import SignInDesk
from .sign_in_values import DAEMON, SignIn, TokenUnavailableError
from .sign_ins import Challenge, SourceSignIns, read_challenge

NO_SECRETS: Final[frozenset[str]] = frozenset()


class OAuthRequests:
    """The requests of one principal to one server, by turns: ``headers``, and ``refused`` if the server refuses."""

    def __init__(self, signs: SourceSignIns, desk: SignInDesk, principal: str) -> None:
        self._signs = signs
        self._desk = desk
        self._principal = principal
        self._used: SignIn | None = None
        self._before: SignIn | None = None
        self.secrets: frozenset[str] = frozenset()
        """The secrets that the latest requests got."""

    async def headers(self) -> Mapping[str, str]:
        """The headers with the token; none without a sign-in.

        Raises:
            SignInNeededError: a user has no sign-in.
            TokenUnavailableError: the token cannot be read or renewed now.
        """
        self._used = await self._signs.current(self._principal)
        if self._used is None:
            if self._principal != DAEMON:
                raise self.needed()
            return {}
        if not self.secrets.issuperset(self._used.secrets):
            self.secrets = frozenset([*self._used.secrets, *(self._before.secrets if self._before else ())])
            self._before = self._used
        return {"Authorization": f"Bearer {self._used.access_token}"}

    async def refused(self, status: int, header: str) -> bool:
        """After 401 or 403, with this ``WWW-Authenticate``: whether to send the request again, with new ``headers``.

        Raises:
            SignInNeededError: a user must sign in again.
            TokenUnavailableError: the operator must, or the token cannot be renewed now.
        """
        challenge, signs = read_challenge(header), self._signs
        if status == 403:
            if challenge.error != "insufficient_scope":
                return False
            return await self._step_up(challenge)
        if challenge != Challenge():
            signs.challenge = challenge
        renewable = signs.auth.grant == "client_credentials" or (self._used and self._used.refresh_token)
        if renewable and await signs.renewed(self._principal, self._used) is not None:
            return True
        if self._used is not None:
            signs.end(self._principal, "the server rejects it")
        raise self.needed()

    async def _step_up(self, challenge: Challenge) -> bool:
        signs = self._signs
        signs.demand(self._principal, challenge.scopes)
        if signs.auth.grant == "client_credentials" and not set(challenge.scopes) <= set(
            () if self._used is None else self._used.scopes
        ):
            return await signs.renewed(self._principal, self._used) is not None
        raise self.needed()

    def needed(self) -> Exception:
        """What to raise if a person must sign in."""
        source, why = self._signs.source, self._signs.reason(self._principal)
        if self._signs.auth.grant == "client_credentials":
            return TokenUnavailableError(f"its token is refused ({why}); check auth in [sources.{source}]")
        if self._principal == DAEMON:
            return TokenUnavailableError(f"it needs a sign-in ({why}); run `toold sources login {source}`")
        return self._desk.needed(self._signs, self._principal, why)


class SourceOAuth:
    """The sign-ins that an MCP source has by its settings, if any."""

    def __init__(self, source: str, settings: McpSettings, desk: SignInDesk) -> None:
        self._desk = desk
        self._all: list[SourceSignIns] = []
        self.shared: OAuthRequests | None = None
        """The daemon's own requests."""
        shared, auth = settings.shared_oauth, settings.auth
        if settings.url is None:
            return
        if shared is not None:
            signs = self._opened(source, settings.url, shared, settings)
            desk.add(signs)
            self.shared = OAuthRequests(signs, desk, DAEMON)
        if isinstance(auth, OAuthAuth) and auth.of_caller:
            self._callers = signs if auth is shared else self._opened(source, settings.url, auth, settings)

    @property
    def secrets(self) -> frozenset[str]:
        """What the daemon's own requests got."""
        return NO_SECRETS if self.shared is None else self.shared.secrets

    def of_caller(self, principal: str) -> OAuthRequests:
        """The requests of a principal."""
        return OAuthRequests(self._callers, self._desk, principal)

    async def close(self) -> None:
        """Waits for running renewals."""
        for signs in self._all:
            self._desk.remove(signs)
            await signs.close()

    def _opened(self, source: str, url: str, auth: OAuthAuth, settings: McpSettings) -> SourceSignIns:
        signs = SourceSignIns(source, url, auth, OAuthHttp(settings.allow_private), self._desk.store)
        self._all.append(signs)
        return signs
