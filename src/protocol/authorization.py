"""Authorizations: the principal of a caller, its toolsets, its expiry. Pure."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal

from .tool_call import Principal


@dataclass(frozen=True, slots=True)
class Authorization:
    """The authorization of an authenticated caller."""

    principal: Principal
    toolsets: tuple[str, ...] | None = None
    """The permitted toolsets, the first being the default; None: all of them, with the operator's default."""
    expires_at: float | None = None
    """A Unix time in seconds; None: it does not expire."""
    credential: bytes = b""
    """The hash of the token, if the token can be revoked; otherwise empty."""
    scopes: tuple[tuple[str, str], ...] = ()
    """For toolsets that are not permitted: the toolset and the OAuth scope that would permit it."""

    def usable_toolsets(self, names: Collection[str]) -> tuple[str, ...]:
        """Returns those of ``names`` that are permitted; if the authorization lists toolsets, in its order."""
        return tuple(names) if self.toolsets is None else tuple(name for name in self.toolsets if name in names)

    def may_use(self, toolset: str) -> bool:
        return self.toolsets is None or toolset in self.toolsets

    def default_toolset(self, names: Collection[str], operator_default: str) -> str:
        """Returns the toolset of a session that requests none."""
        return operator_default if self.toolsets is None else next(iter(self.usable_toolsets(names)), "")


@dataclass(frozen=True, slots=True)
class AuthorizationDenied:
    """The caller is not authorized."""

    reason: Literal["missing", "invalid", "insufficient_scope", "unavailable"]
    """No token; an invalid token; a token that permits nothing here; the token cannot be verified at present."""
    message: str
    """The problem and what to do. It never quotes the token."""
    scope: str = ""
    """With ``insufficient_scope``: the scope that the token needs."""


Authenticate = Callable[[str | None], Awaitable[Authorization | AuthorizationDenied]]
"""The token that a client sent → its authorization."""
