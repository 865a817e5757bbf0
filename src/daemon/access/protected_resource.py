"""The daemon as an OAuth 2.1 protected resource: its identifiers, its metadata, and the permissions of tokens. Pure.

RFC 9728 defines the metadata by which a client that gets a 401 finds the issuer; RFC 8707 defines the resource for
which a token is valid.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from ...protocol.authorization import Authorization, AuthorizationDenied
from ...protocol.tool_call import Principal

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"
MAX_SUBJECT_CHARS: Final = 255
"""The limit of OpenID Connect."""


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """The operator's configuration of the resource."""

    issuer: str
    """The issuer whose tokens are accepted: the exact ``iss``."""
    identifier: str
    """The URL of ``/mcp`` as clients know it."""
    audience: str
    """The ``aud`` of tokens for it: the identifier, unless the issuer uses another name."""
    scopes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Scope → the toolsets that it permits; empty: every token permits all."""
    operator_scope: str | None = None
    """The scope that gives the operator right; None: no token of the issuer has it."""

    def resource_id(self, toolset: str | None) -> str:
        """Returns the identifier of ``/mcp`` or ``/mcp/{toolset}``."""
        return self.identifier if toolset is None else f"{self.identifier}/{toolset}"

    def metadata_url(self, toolset: str | None) -> str:
        """Returns the URL of the metadata of ``/mcp`` or ``/mcp/{toolset}``."""
        parts = urlsplit(self.resource_id(toolset))
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"

    def metadata(self, path: str, toolsets: Collection[str]) -> dict[str, Any] | None:
        """Returns the metadata document at ``WELL_KNOWN`` plus ``path``, if it exists; an empty path stands for
        ``/mcp``.
        """
        for toolset in (None, *toolsets):
            if path in {urlsplit(self.resource_id(toolset)).path, "/mcp" if toolset is None else f"/mcp/{toolset}"} or (
                toolset is None and path == ""
            ):
                return {
                    "resource": self.resource_id(toolset),
                    "authorization_servers": [self.issuer],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "toold",
                    **({"scopes_supported": supported} if (supported := self._supported_scopes()) else {}),
                }
        return None

    def audiences(self, toolsets: Iterable[str]) -> list[str]:
        """Returns all accepted values of ``aud``."""
        return [self.audience, *(self.resource_id(toolset) for toolset in toolsets)]

    def authorize(self, claims: Mapping[str, Any], toolsets: Collection[str]) -> Authorization | AuthorizationDenied:
        """Returns the authorization of a token with a valid signature and audience.

        A token for ``/mcp/{toolset}`` permits that toolset only.
        """
        subject = claims.get("sub")
        if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT_CHARS or not subject.isprintable():
            return AuthorizationDenied(
                "invalid", "without a valid subject: sub must be a string of 1 to 255 printable characters."
            )
        granted = _scopes(claims)
        usable, needed = self._permitted(granted, toolsets)
        audiences = _as_list(claims.get("aud"))
        if self.audience not in audiences:
            usable = [name for name in usable if self.resource_id(name) in audiences]
        if not usable:
            every = " ".join(self.scopes)
            return AuthorizationDenied(
                "insufficient_scope",
                "not valid for any toolset here; request one with a scope that permits one.",
                every,
            )
        everything = not self.scopes and self.audience in audiences
        principal = Principal(f"oauth:{subject}", operator=self.operator_scope in granted)
        return Authorization(
            principal, None if everything else tuple(usable), float(claims["exp"]), scopes=tuple(needed)
        )

    def _supported_scopes(self) -> list[str]:
        operator = () if self.operator_scope is None else (self.operator_scope,)
        return list(dict.fromkeys((*self.scopes, *operator)))

    def _permitted(self, granted: set[str], toolsets: Collection[str]) -> tuple[list[str], list[tuple[str, str]]]:
        """Returns the toolsets that these scopes permit, and for each other toolset a scope that would."""
        if not self.scopes:
            return list(toolsets), []
        permitted = {name: None for scope, names in self.scopes.items() if scope in granted for name in names}
        needed: dict[str, str] = {}
        for scope, names in self.scopes.items():
            for name in names:
                if name not in permitted:
                    needed.setdefault(name, scope)
        return list(permitted), list(needed.items())


def _scopes(claims: Mapping[str, Any]) -> set[str]:
    """Reads ``scope``, a string with spaces (RFC 9068), and ``scp``, which some issuers send as a list."""
    return {scope for name in ("scope", "scp") for scope in _as_list(claims.get(name), split=True)}


def _as_list(value: Any, *, split: bool = False) -> list[str]:
    if isinstance(value, str):
        return value.split() if split else [value]
    return [part for part in value if isinstance(part, str)] if isinstance(value, list) else []
