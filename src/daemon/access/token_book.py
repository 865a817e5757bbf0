"""Named tokens: their principals, toolsets, rights, expiry and limits (decision 37). Pure.

A token has 256 random bits and cannot be guessed, so its plain SHA-256 is stored. A slow hash, as for passwords that
people choose, would only delay every hello. Tokens are looked up by hash. The time of a look-up depends only on the
hash of the input, so it reveals nothing useful about other tokens.
"""

import hashlib
import re
from collections.abc import Iterable
from secrets import token_urlsafe
from typing import Annotated, Final

import msgspec

TOKEN_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")
PREFIX: Final = "toold_"
"""A prefix by which scanners recognize leaked tokens, for example in a repository."""
_TOKEN_BYTES: Final = 32


class TokenError(Exception):
    """A named token cannot be created or revoked; the message gives the reason and the remedy."""


class NamedToken(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The stored record of one token. Times are Unix times in seconds.

    Validation of the file is strict: a typo in an edited file must not permit more.
    """

    name: Annotated[str, msgspec.Meta(pattern=rf"^{TOKEN_NAME.pattern}\Z")]
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
    """The hash of the token, in hexadecimal digits."""
    created_at: float
    toolsets: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ()
    """The permitted toolsets, of which the first is the default; empty if all are permitted."""
    expires_at: float | None = None
    revoked_at: float | None = None
    max_running: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The limit of concurrent calls, over all its connections."""
    daily_budget: dict[str, Annotated[float, msgspec.Meta(ge=0)]] = {}
    """The limit per currency; for other currencies only the daemon's budget applies."""
    operator: bool = False
    """Whether it has the operator right."""
    acts_for_users: bool = False
    """Whether it may act for the users that its requests name."""
    writes_registry: bool = False
    """Whether it may change the served registry, as an operator may."""

    @property
    def principal(self) -> str:
        """The name of the token's principal, which no other token shares."""
        return f"token:{self.name}"

    def invalid_reason(self, now: float) -> str | None:
        """Returns why the token is no longer valid; None if it is valid."""
        if self.revoked_at is not None:
            return f"the token {self.name!r} was revoked"
        if self.expires_at is not None and now >= self.expires_at:
            return f"the token {self.name!r} has expired"
        return None


def hash_of(token: str) -> str:
    """Returns the stored hash of a token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


class TokenBook:
    """All named tokens; immutable."""

    def __init__(self, tokens: Iterable[NamedToken] = ()) -> None:
        self.tokens: tuple[NamedToken, ...] = tuple(sorted(tokens, key=lambda token: token.name))
        """Sorted by name; includes revoked and expired tokens."""
        self._by_hash = {token.sha256: token for token in self.tokens}

    def __repr__(self) -> str:
        return f"<TokenBook of {len(self.tokens)}>"

    def by_token(self, token: str) -> NamedToken | None:
        """Returns the record of a token, valid or not."""
        return self._by_hash.get(hash_of(token))

    def by_hash(self, sha256: str) -> NamedToken | None:
        """Returns the record with this hash, valid or not."""
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
        operator: bool = False,
        acts_for_users: bool = False,
        writes_registry: bool = False,
    ) -> tuple["TokenBook", str]:
        """Returns a book with a new token, and the token itself, which is stored nowhere.

        The new token replaces a revoked or expired one of the same name and becomes the same principal.

        Raises:
            TokenError: the name is invalid, or a valid token has it.
        """
        if not TOKEN_NAME.fullmatch(name):
            raise TokenError(
                f"{name[:64]!r} is not a valid token name; use 1 to 64 characters of A-Z, a-z, 0-9, _, . and -"
            )
        if acts_for_users and (operator or writes_registry or max_running is not None or daily_budget):
            raise TokenError(
                "a token that acts for users has neither the operator right nor the right to change the registry, nor "
                "max_running or daily_budget, which would not count the calls of its users; create another token"
            )
        existing = self._named(name)
        if existing is not None and existing.invalid_reason(now) is None:
            raise TokenError(f"a token {name!r} already exists; revoke it first, or choose another name")
        secret = PREFIX + token_urlsafe(_TOKEN_BYTES)
        token = NamedToken(
            name=name,
            sha256=hash_of(secret),
            created_at=now,
            toolsets=toolsets,
            expires_at=expires_at,
            max_running=max_running,
            daily_budget=daily_budget or {},
            operator=operator,
            acts_for_users=acts_for_users,
            writes_registry=writes_registry,
        )
        return TokenBook([*(other for other in self.tokens if other is not existing), token]), secret

    def revoked(self, name: str, now: float) -> "TokenBook":
        """Returns a book in which the token of this name is revoked.

        Raises:
            TokenError: there is no such token, or it is already revoked.
        """
        token = self._named(name)
        if token is None:
            names = ", ".join(token.name for token in self.tokens) or "none"
            raise TokenError(f"no token is named {name[:64]!r}; existing tokens: {names}")
        if token.revoked_at is not None:
            raise TokenError(f"the token {name!r} is already revoked")
        changed = msgspec.structs.replace(token, revoked_at=now)
        return TokenBook(changed if other is token else other for other in self.tokens)

    def _named(self, name: str) -> NamedToken | None:
        return next((token for token in self.tokens if token.name == name), None)
