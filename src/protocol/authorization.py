"""The authorization of a caller: its principal, its toolsets, its expiry. Pure."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from typing import Literal

from .tool_call import Principal
from .user_credential import USER_ID


@dataclass(frozen=True, slots=True)
class Authorization:
    """The authorization of an authenticated caller."""

    principal: Principal
    toolsets: tuple[str, ...] | None = None
    """The permitted toolsets, the default first; None permits all toolsets, with the operator's default."""
    expires_at: float | None = None
    """A Unix time in seconds; None: the authorization does not expire."""
    credential: bytes = b""
    """The hash of the token, if the token can be revoked; otherwise empty."""
    scopes: tuple[tuple[str, str], ...] = ()
    """Maps toolsets that are not permitted to the OAuth scope that would permit them."""

    acts_for_users: bool = False
    """Whether the token may act for users."""
    user: str | None = None
    """The user for whom the token acts; this user is then the principal."""
    writes_registry: bool = False
    """Whether the token may change the served registry."""

    def usable_toolsets(self, names: Collection[str]) -> tuple[str, ...]:
        """Returns the permitted toolsets among ``names``, in the authorization's order if it lists toolsets."""
        return tuple(names) if self.toolsets is None else tuple(name for name in self.toolsets if name in names)

    def may_use(self, toolset: str) -> bool:
        return self.toolsets is None or toolset in self.toolsets

    def default_toolset(self, names: Collection[str], operator_default: str) -> str:
        """Returns the toolset of a session that requests none."""
        return operator_default if self.toolsets is None else next(iter(self.usable_toolsets(names)), "")


@dataclass(frozen=True, slots=True)
class AuthorizationDenied:
    """The caller is not authorized."""

    reason: Literal["missing", "invalid", "insufficient_scope", "not_for_users", "unavailable"]
    """The values mean, in their order: no token; an invalid token; a token that permits nothing here; a user for whom
    the token may not act; a token that cannot be verified at present.
    """
    message: str
    """The problem and what to do. It never quotes the token."""
    scope: str = ""
    """With ``insufficient_scope``: the scope that the token needs."""


def on_behalf(access: Authorization | AuthorizationDenied, user_id: str | None) -> Authorization | AuthorizationDenied:
    """Returns the authorization of a request. If it names a user in ``USER_HEADER``, this user is the principal.

    The header is refused if the token may not act for users, so a forged header has no effect.
    """
    if user_id is None or isinstance(access, AuthorizationDenied):
        return access
    if not access.acts_for_users:
        return AuthorizationDenied(
            "not_for_users",
            "This token may not act for users, so requests with it must not have the header X-User-Id. The operator "
            "creates tokens that may: toold token create NAME --acts-for-users.",
        )
    if not USER_ID.fullmatch(user_id):
        return AuthorizationDenied(
            "not_for_users", "X-User-Id must be one id of 1 to 128 characters of A-Z, a-z, 0-9 and _.@+|=-."
        )
    return replace(access, principal=Principal(f"user:{user_id}"), user=user_id)


Authenticate = Callable[[str | None], Awaitable[Authorization | AuthorizationDenied]]
"""The token that a client sent → its authorization."""
