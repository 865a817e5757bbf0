"""Authenticates callers by their token: the daemon's token, a named token, or a token of an OAuth issuer."""

import hmac
import time
from collections.abc import Callable
from typing import Final, Protocol

from pydantic import SecretStr

from ...protocol.authorization import Authorization, AuthorizationDenied
from ...protocol.tool_call import LOCAL, Principal
from .token_book import NamedToken, TokenBook, hash_of

_WRONG: Final = (
    "not valid for this daemon. `toold token` prints the daemon's token; a new state directory has a new token."
)


class TokenIssuer(Protocol):
    """An issuer whose tokens are accepted in addition to the daemon's."""

    def looks_like(self, token: str) -> bool: ...

    async def verify(self, token: str) -> Authorization | AuthorizationDenied: ...


class Authenticator:
    """Implements ``Authenticate``. ``own`` is the daemon's token; with None, auth is off, and every caller is local."""

    def __init__(
        self,
        own: SecretStr | None,
        book: Callable[[], TokenBook],
        issuer: TokenIssuer | None = None,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._own = token_check(own)
        self.own_hash = "" if own is None else hash_of(own.get_secret_value())
        """The hash of the daemon's token; empty if auth is off."""
        self._book = book
        self._issuer = issuer
        self._clock = clock

    async def __call__(self, token: str | None) -> Authorization | AuthorizationDenied:
        principal = self._own(token)
        if principal is not None:
            return Authorization(principal)
        if token is None:
            return AuthorizationDenied("missing", "Send a token.")
        named = self._book().by_token(token)
        if named is not None:
            return self._named(named)
        if self._issuer is not None and self._issuer.looks_like(token):
            return await self._issuer.verify(token)
        return AuthorizationDenied("invalid", _WRONG)

    def by_hash(self, sha256: str) -> Authorization | AuthorizationDenied:
        """The authorization of the token with this hash, for a browser that signed in with the token.

        If auth is off, every hash gives a local caller.
        """
        if not self.own_hash or hmac.compare_digest(sha256.encode(), self.own_hash.encode()):
            return Authorization(LOCAL)
        named = self._book().by_hash(sha256)
        return AuthorizationDenied("invalid", _WRONG) if named is None else self._named(named)

    def denial_reason(self, access: Authorization) -> str | None:
        """Returns why an authorization is no longer valid (token revoked or expired); None if it is valid."""
        now = self._clock()
        if access.credential:
            named = self._book().by_hash(access.credential.hex())
            if named is None:
                return "its token was revoked"
            if access.acts_for_users and not named.acts_for_users:
                return "its token may no longer act for users"
            if access.user is None and named.operator != access.principal.operator:
                return "its token's operator right was changed"
            return named.invalid_reason(now)
        if access.expires_at is not None and now >= access.expires_at:
            return "its token has expired"
        return None

    def _named(self, token: NamedToken) -> Authorization | AuthorizationDenied:
        reason = token.invalid_reason(self._clock())
        if reason is not None:
            return AuthorizationDenied("invalid", f"no longer valid: {reason}; ask the operator for a new one.")
        return Authorization(
            Principal(token.principal, token.operator),
            token.toolsets or None,
            token.expires_at,
            bytes.fromhex(token.sha256),
            acts_for_users=token.acts_for_users,
            writes_registry=token.writes_registry,
        )


OwnToken = Callable[[str | None], Principal | None]
"""Maps the daemon's token to its principal, and any other token, even a named one, to None."""


def token_check(token: SecretStr | None) -> OwnToken:
    """Returns a constant-time check against the daemon's token. With None, auth is off, and every caller is local."""
    if token is None:
        return lambda _: LOCAL
    expected = token.get_secret_value().encode()

    def check(presented: str | None) -> Principal | None:
        # The daemon's token contains no surrogates, but the client's input may.
        known = presented is not None and hmac.compare_digest(presented.encode(errors="surrogatepass"), expected)
        return LOCAL if known else None

    return check
