"""Named tokens: who has one, which toolsets it may use, until when, within which limits (decision 37). Pure.

A token is 256 random bits, so that one round of SHA-256 is what is to be kept of it: nobody can try that many, and a
slow hash, made for passwords that people choose, would only delay every hello. It is found by that hash: how long a
look-up takes tells of the hash of what was sent, from which nothing can be steered towards another token.
"""

import hashlib
import re
from collections.abc import Iterable
from secrets import token_urlsafe
from typing import Annotated, Final

import msgspec

TOKEN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PREFIX: Final = "toold_"
"""By it a token is recognised where it does not belong, such as in a repository."""
_TOKEN_BYTES: Final = 32


class TokenError(Exception):
    """A named token cannot be made or taken back; the message says why and what to do."""


class NamedToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is kept of one. Times are Unix times in seconds.

    A file that was edited is taken only as it could have been written: what is misspelt there must not let more in.
    """

    name: Annotated[str, msgspec.Meta(pattern=rf"^{TOKEN_NAME.pattern}\Z")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """Of the token, in hexadecimal digits."""
    created_at: float
    toolsets: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ()
    """That it may use, the first being its default; none named: all there are."""
    expires_at: float | None = None
    revoked_at: float | None = None
    max_running: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Calls of its that run at once, over all its connections."""
    daily_budget: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    """By currency; one without an amount is bounded by the daemon's budget alone."""

    @property
    def principal(self) -> str:
        """The name of its principal: what is this token's is nobody else's."""
        return f"token:{self.name}"

    def invalid_reason(self, now: float) -> str | None:
        """Why it is not good any more, where it is not."""
        if self.revoked_at is not None:
            return f"the token {self.name!r} was revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return f"the token {self.name!r} has expired"
        return None


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class TokenBook:
    """All named tokens; it never changes once it is made."""

    def __init__(self, tokens: Iterable[NamedToken] = ()) -> None:
        self.tokens: tuple[NamedToken, ...] = tuple(sorted(tokens, key=lambda token: token.name))
        """By name, those too that are not good any more."""
        self._by_hash = {token.sha256: token for token in self.tokens}

    def __repr__(self) -> str:
        return f"<TokenBook of {len(self.tokens)}>"

    def find(self, token: str) -> NamedToken | None:
        """The one that this is, good or not."""
        return self._by_hash.get(hash_of(token))

    def by_hash(self, sha256: str) -> NamedToken | None:
        """The one of this hash, good or not."""
        return self._by_hash.get(sha256)

    def with_new(
        self,
        name: str,
        now: float,
        *,
        toolsets: tuple[str, ...] = (),
        expires_at: float | None = None,
        max_running: int | None = None,
        daily_budget: dict[str, float] | None = None,
    ) -> tuple["TokenBook", str]:
        """A book with a new token, and the token itself, which is kept nowhere.

        In the place of one of the same name that is not good any more: what that one's principal has, it has then.

        Raises:
            TokenError: the name cannot be one, or is a good token's.
        """
        if not TOKEN_NAME.fullmatch(name):
            raise TokenError(f"a token's name is 1–64 of A-Z, a-z, 0-9, _, . and -, not {name[:64]!r}")
        before = self._named(name)
        if before is not None and before.invalid_reason(now) is None:
            raise TokenError(f"there is a token {name!r} already; revoke it first, or take another name")
        secret = PREFIX + token_urlsafe(_TOKEN_BYTES)
        token = NamedToken(
            name=name,
            sha256=hash_of(secret),
            created_at=now,
            toolsets=toolsets,
            expires_at=expires_at,
            max_running=max_running,
            daily_budget=daily_budget or {},
        )
        return TokenBook([*(one for one in self.tokens if one is not before), token]), secret

    def revoked(self, name: str, now: float) -> "TokenBook":
        """A book in which the token of this name is good no more.

        Raises:
            TokenError: there is none, or it was revoked before.
        """
        token = self._named(name)
        if token is None:
            there = ", ".join(one.name for one in self.tokens) or "none"
            raise TokenError(f"there is no token {name[:64]!r}; there is {there}")
        if token.revoked_at is not None:
            raise TokenError(f"the token {name!r} was revoked before")
        changed = msgspec.structs.replace(token, revoked_at=now)
        return TokenBook(changed if one is token else one for one in self.tokens)

    def _named(self, name: str) -> NamedToken | None:
        return next((token for token in self.tokens if token.name == name), None)
