"""Who is let in, by the token that came: the daemon's own, a named one, or one of an OAuth issuer."""

import time
from collections.abc import Callable
from typing import Final, Protocol

from pydantic import SecretStr

from ...protocol.authorization import Authorization, AuthorizationDenied
from ...protocol.tool_call import Principal
from .own_token import token_check
from .token_book import NamedToken, TokenBook

_WRONG: Final = (
    "not one that is good here. `toold token` prints the daemon's own; a daemon that was set up anew has a new one."
)


class TokenIssuer(Protocol):
    """Whose tokens are taken beside the daemon's own."""

    def looks_like(self, token: str) -> bool: ...

    async def verify(self, token: str) -> Authorization | AuthorizationDenied: ...


class Authenticator:
    """Satisfies ``Authenticate``. ``own`` is the daemon's token; None: auth is off, and everybody is local."""

    def __init__(
        self,
        own: SecretStr | None,
        book: Callable[[], TokenBook],
        issuer: TokenIssuer | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own = token_check(own)
        self._book = book
        self._issuer = issuer
        self._clock = clock

    async def __call__(self, token: str | None) -> Authorization | AuthorizationDenied:
        principal = self._own(token)
        if principal is not None:
            return Authorization(principal)
        if token is None:
            return AuthorizationDenied("missing", "Send a token.")
        named = self._book().find(token)
        if named is not None:
            return self._named(named)
        if self._issuer is not None and self._issuer.looks_like(token):
            return await self._issuer.verify(token)
        return AuthorizationDenied("invalid", _WRONG)

    def objection(self, access: Authorization) -> str | None:
        """Why who was let in has to go, where that is so: its token was revoked, or has expired."""
        now = self._clock()
        if access.credential:
            named = self._book().by_hash(access.credential.hex())
            return "its token was revoked" if named is None else named.objection(now)
        if access.expires_at is not None and now >= access.expires_at:
            return "its token has expired"
        return None

    def _named(self, token: NamedToken) -> Authorization | AuthorizationDenied:
        wrong = token.objection(self._clock())
        if wrong is not None:
            return AuthorizationDenied("invalid", f"not good any more: {wrong}; its operator makes a new one.")
        return Authorization(
            Principal(token.principal), token.toolsets or None, token.expires_at, bytes.fromhex(token.sha256)
        )
