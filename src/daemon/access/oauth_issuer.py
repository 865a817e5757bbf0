"""Verifies the tokens of an OAuth 2.1 issuer: JWTs, checked locally with its public keys (RFC 9068, decision 39).
Tokens are neither stored nor forwarded.
"""

from collections.abc import Callable, Collection
from typing import Any, Final

import jwt
import structlog
from jwt import PyJWK
from jwt.exceptions import (
    ExpiredSignatureError,
    ImmatureSignatureError,
    InvalidAudienceError,
    InvalidIssuerError,
    MissingRequiredClaimError,
    PyJWTError,
)

from ...protocol.authorization import Authorization, AuthorizationDenied
from .issuer_keys import IssuerKeys, IssuerUnavailableError, Jwk
from .protected_resource import ProtectedResource

LEEWAY_S: Final = 30
"""The tolerated difference between the issuer's clock and this one."""
MAX_TOKEN_CHARS: Final = 16 * 1024
MIN_RSA_BITS: Final = 2048

_MAX_EXPIRY: Final = 253_370_764_800.0
"""The start of the year 9999."""

_KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The accepted algorithms and their key types. Shared secrets and ``none`` are not accepted."""

_log = structlog.get_logger(__name__)


class OAuthIssuer:
    """Verifies the tokens of one issuer. Implements ``TokenIssuer``."""

    def __init__(
        self,
        resource: ProtectedResource,
        toolsets: Callable[[], Collection[str]],
        keys: IssuerKeys | None = None,
    ) -> None:
        self._resource = resource
        self._toolsets = toolsets
        self._keys = keys or IssuerKeys(resource.issuer)

    def looks_like(self, token: str) -> bool:
        return token.count(".") == 2

    async def verify(self, token: str) -> Authorization | AuthorizationDenied:
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            return AuthorizationDenied("invalid", "not a JSON Web Token.")
        try:
            header = jwt.get_unverified_header(token)
        except (PyJWTError, ValueError):
            return AuthorizationDenied("invalid", "not a JSON Web Token.")
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in _KEY_TYPES:
            return AuthorizationDenied(
                "invalid", f"signed with an unsupported algorithm; alg may be {', '.join(_KEY_TYPES)}."
            )
        if kid is not None and not isinstance(kid, str):
            return AuthorizationDenied("invalid", "not a JSON Web Token: kid is not a string.")
        try:
            keys = await self._keys.keys_for(kid)
        except IssuerUnavailableError as error:
            _log.warning("cannot verify a token", issuer=self._resource.issuer, reason=str(error))
            return AuthorizationDenied(
                "unavailable", f"The keys of {self._resource.issuer} are not available now; try again later."
            )
        key = _key_for(algorithm, keys)
        if key is None:
            return AuthorizationDenied("invalid", f"not signed by a key of {self._resource.issuer}.")
        return self._authorize(token, key, algorithm)

    def _authorize(self, token: str, key: PyJWK, algorithm: str) -> Authorization | AuthorizationDenied:
        toolsets = self._toolsets()
        try:
            claims = jwt.decode(
                token,
                key,
                algorithms=[algorithm],
                audience=self._resource.audiences(toolsets),
                issuer=self._resource.issuer,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
            expires_at = float(claims["exp"])
        except (PyJWTError, ValueError, TypeError, OverflowError) as error:
            return AuthorizationDenied("invalid", self._problem(error))
        if expires_at > _MAX_EXPIRY:
            return AuthorizationDenied("invalid", "invalid: exp is out of range.")
        return self._resource.authorize(claims, toolsets)

    def _problem(self, error: Exception) -> str:
        """Returns the problem, as the end of a sentence that starts with *The token is*."""
        match error:
            case ExpiredSignatureError():
                return f"expired; request a new one from {self._resource.issuer}."
            case ImmatureSignatureError():
                return "not valid yet."
            case InvalidAudienceError():
                return f"for another audience; request one for {self._resource.audience}."
            case InvalidIssuerError():
                return f"of another issuer; request one from {self._resource.issuer}."
            case MissingRequiredClaimError(claim=claim):
                return f"without {claim}."
            case _:
                return f"not signed by {self._resource.issuer}."


def _key_for(algorithm: str, keys: list[Jwk]) -> PyJWK | None:
    """Returns the key that can have signed with this algorithm; None if there is none, or several and no key id."""
    candidates = [
        key for key in keys if key.get("kty") == _KEY_TYPES[algorithm] and key.get("alg", algorithm) == algorithm
    ]
    if len(candidates) != 1:
        return None
    try:
        key = PyJWK(candidates[0], algorithm)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    bits: Any = getattr(key.key, "key_size", MIN_RSA_BITS)
    return key if key.key_type != "RSA" or bits >= MIN_RSA_BITS else None
