"""What a caller may do who has proved who it is: as whom, with which toolsets, until when. Pure."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Literal

from .tool_call import Principal


@dataclass(frozen=True, slots=True)
class Authorization:
    """Whoever has it was let in."""

    principal: Principal
    toolsets: tuple[str, ...] | None = None
    """Those that it may use, the first being its default; None: all there are, with the operator's default."""
    expires_at: float | None = None
    """A Unix time in seconds; None: it has no end."""
    credential: bytes = b""
    """What it was proved by, hashed; empty where that cannot be taken back."""
    scopes: tuple[tuple[str, str], ...] = ()
    """Toolset → what an OAuth token would need for it; for those that it may not use."""

    def usable_toolsets(self, names: Collection[str]) -> tuple[str, ...]:
        """The toolsets, of those that are ``there``, that it may use; where it has some of its own, in their order."""
        return tuple(names) if self.toolsets is None else tuple(name for name in self.toolsets if name in names)

    def may_use(self, toolset: str) -> bool:
        return self.toolsets is None or toolset in self.toolsets

    def default_toolset(self, names: Collection[str], operator_default: str) -> str:
        """The toolset of a session that asks for none: the operator's, or the first of its own that is ``there``."""
        return operator_default if self.toolsets is None else next(iter(self.usable_toolsets(names)), "")


@dataclass(frozen=True, slots=True)
class AuthorizationDenied:
    """Whoever asks is not let in."""

    why: Literal["missing", "invalid", "insufficient_scope", "unavailable"]
    """No token; one that is not good; one that may do nothing here; or it cannot be told at present."""
    message: str
    """What is wrong and what to do; it quotes nothing of the token."""
    scope: str = ""
    """With ``insufficient_scope``: what the token would need."""


Authenticate = Callable[[str | None], Awaitable[Authorization | AuthorizationDenied]]
"""The token that came → who that is."""
