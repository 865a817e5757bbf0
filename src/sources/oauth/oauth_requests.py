"""Authorizes requests to a source's server by sign-ins, and handles requests that the server refuses."""

from typing import Final

from ..source_settings import McpSettings
from .oauth_http import OAuthHttp
from .oauth_settings import OAuthAuth
from .sign_in_desk import SignInDesk
from .sign_in_values import DAEMON, SignIn, TokenUnavailableError
from .sign_ins import Challenge, SourceSignIns, read_challenge

NO_SECRETS: Final[frozenset[str]] = frozenset()


class OAuthRequests:
    """The requests of one principal to one server, which may be concurrent.

    Each gets the token of ``sign_in``. If the server refuses a request, ``refused`` says whether to send it again.
    """

    def __init__(self, sign_ins: SourceSignIns, desk: SignInDesk, principal: str) -> None:
        self._sign_ins = sign_ins
        self._desk = desk
        self._principal = principal
        self._before: SignIn | None = None
        self.secrets: frozenset[str] = frozenset()
        """The secrets that were sent with the latest requests."""

    async def sign_in(self) -> SignIn | None:
        """The sign-in for the next request; None if the daemon has none.

        Raises:
            SignInNeededError: a user has no sign-in.
            TokenUnavailableError: the token cannot be read or renewed now.
        """
        current = await self._sign_ins.current(self._principal)
        if current is None:
            if self._principal != DAEMON:
                raise self.needed()
            return None
        if not self.secrets.issuperset(current.secrets):
            self.secrets = frozenset([*current.secrets, *(self._before.secrets if self._before else ())])
            self._before = current
        return current

    async def refused(self, status: int, header: str, used: SignIn | None) -> bool:
        """Returns, after 401 or 403 with this ``WWW-Authenticate``, whether to send the request again with a new
        ``sign_in``. ``used`` is the sign-in of the refused request.

        Raises:
            SignInNeededError: a user must sign in again.
            TokenUnavailableError: the operator must sign in again, or the token cannot be renewed now.
        """
        challenge, sign_ins = read_challenge(header), self._sign_ins
        if status == 403:
            if challenge.error != "insufficient_scope":
                return False
            return await self._step_up(challenge, used)
        if challenge != Challenge():
            sign_ins.challenge = challenge
        renewable = sign_ins.auth.grant == "client_credentials" or (used is not None and used.refresh_token)
        if renewable:
            if await sign_ins.renewed(self._principal, used) is not None:
                return True
        elif used is not None:
            sign_ins.end(self._principal, "the server rejects it")
        raise self.needed()

    async def _step_up(self, challenge: Challenge, used: SignIn | None) -> bool:
        sign_ins = self._sign_ins
        sign_ins.demand(self._principal, challenge.scopes)
        granted = set(() if used is None else used.scopes)
        if sign_ins.auth.grant == "client_credentials" and not set(challenge.scopes) <= granted:
            return await sign_ins.renewed(self._principal, used) is not None
        raise self.needed()

    def needed(self) -> Exception:
        """The error to raise if a person must sign in."""
        source, why = self._sign_ins.source, self._sign_ins.reason(self._principal)
        if self._sign_ins.auth.grant == "client_credentials":
            return TokenUnavailableError(f"its token is refused ({why}); check auth in [sources.{source}]")
        if self._principal == DAEMON:
            return TokenUnavailableError(f"it needs a sign-in ({why}); run `toold sources login {source}`")
        return self._desk.needed(self._sign_ins, self._principal, why)


class SourceOAuth:
    """The sign-ins that the settings of an MCP source require, if any."""

    def __init__(self, source: str, settings: McpSettings, desk: SignInDesk) -> None:
        self._desk = desk
        self._all: list[SourceSignIns] = []
        self.shared: OAuthRequests | None = None
        """The daemon's own requests."""
        shared, auth = settings.shared_oauth, settings.auth
        if settings.url is None:
            return
        if shared is not None:
            sign_ins = self._opened(source, settings.url, shared, settings)
            desk.add(sign_ins)
            self.shared = OAuthRequests(sign_ins, desk, DAEMON)
        if isinstance(auth, OAuthAuth) and auth.of_caller:
            self._callers = sign_ins if auth is shared else self._opened(source, settings.url, auth, settings)

    @property
    def secrets(self) -> frozenset[str]:
        """The secrets that were sent with the daemon's own requests."""
        return NO_SECRETS if self.shared is None else self.shared.secrets

    def of_caller(self, principal: str) -> OAuthRequests:
        """The requests of a principal."""
        return OAuthRequests(self._callers, self._desk, principal)

    async def close(self) -> None:
        """Waits for running renewals."""
        for sign_ins in self._all:
            self._desk.remove(sign_ins)
            await sign_ins.close()

    def _opened(self, source: str, url: str, auth: OAuthAuth, settings: McpSettings) -> SourceSignIns:
        sign_ins = SourceSignIns(source, url, auth, OAuthHttp(settings.allow_private), self._desk.store)
        self._all.append(sign_ins)
        return sign_ins
