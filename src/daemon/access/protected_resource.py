"""The daemon as an OAuth 2.1 protected resource: what it is called, which tokens are for it, what they may. Pure.

RFC 9728 has the metadata that leads a client from a 401 to the issuer; RFC 8707 the resource that a token is for.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from ...protocol.authorization import Authorization, AuthorizationDenied
from ...protocol.tool_call import Principal

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
MAX_SUBJECT_CHARS: Final = 255
"""As OpenID Connect has it."""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """What the operator said of it."""

    issuer: str
    """Whose tokens are taken: ``iss``, to the letter."""
    identifier: str
    """The address of ``/mcp`` as clients know it."""
    audience: str
    """What ``aud`` of a token for it has: the identifier, unless the issuer has another name for it."""
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scope → the toolsets that it opens; empty: every token opens all."""

    def of(self, toolset: str | None) -> str:
        """What ``/mcp`` or ``/mcp/{toolset}`` is called."""
        return self.identifier if toolset is None else f"{self.identifier}/{toolset}"

    def metadata_url(self, toolset: str | None) -> str:
        """Where the metadata of ``/mcp`` or ``/mcp/{toolset}`` is."""
        parts = urlsplit(self.of(toolset))
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"

    def metadata(self, path: str, toolsets: Collection[str]) -> dict[str, Any] | None:
        """What is at ``WELL_KNOWN`` and this path, where there is any: that of ``/mcp`` at none."""
        for toolset in (None, *toolsets):
            if path in {urlsplit(self.of(toolset)).path, "/mcp" if toolset is None else f"/mcp/{toolset}"} or (
                toolset is None and path == ""
            ):
                return {
                    "resource": self.of(toolset),
                    "authorization_servers": [self.issuer],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "toold",
                    **({"scopes_supported": list(self.scopes)} if self.scopes else {}),
                }
        return None

    def audiences(self, toolsets: Iterable[str]) -> list[str]:
        """All that ``aud`` may be."""
        return [self.audience, *(self.of(toolset) for toolset in toolsets)]

    def authorize(self, claims: Mapping[str, Any], toolsets: Collection[str]) -> Authorization | AuthorizationDenied:
        """What the claims of a token, signed and for an audience here, give access to.

        A token for ``/mcp/{toolset}`` is good for that toolset alone.
        """
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
            return AuthorizationDenied(
                "invalid", "without a subject that can be told: sub is a text of up to 255 characters."
            )
        usable, needed = self._opened(_scopes(claims), toolsets)
        audiences = _listed(claims.get("aud"))
        if self.audience not in audiences:
            usable = [name for name in usable if self.of(name) in audiences]
        if not usable:
            every = " ".join(self.scopes)
            return AuthorizationDenied(
                "insufficient_scope", "not for any toolset here; get one with a scope that opens one.", every
            )
        everything = not self.scopes and self.audience in audiences
        principal = Principal(f"oauth:{subject}")
        return Authorization(
            principal, None if everything else tuple(usable), float(claims["exp"]), scopes=tuple(needed)
        )

    def _opened(self, granted: set[str], toolsets: Collection[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """The toolsets that these scopes open, and for each other one a scope that would."""
        if not self.scopes:
            return list(toolsets), []
        opened = {name: None for scope, names in self.scopes.items() if scope in granted for name in names}
        needed: dict[str, str] = {}
        for scope, names in self.scopes.items():
            for name in names:
                if name not in opened:
                    needed.setdefault(name, scope)
        return list(opened), list(needed.items())


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """``scope`` is a text with spaces (RFC 9068); some issuers have ``scp``, and a list."""
    return {scope for name in ("scope", "scp") for scope in _listed(claims.get(name), split=True)}


def _listed(value: Any, *, split: bool = False) -> list[str]:
    if isinstance(value, str):
        return value.split() if split else [value]
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
