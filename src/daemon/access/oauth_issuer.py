"""Tokens of an OAuth 2.1 issuer: JWTs, verified here by its public keys (RFC 9068, decision 39). Nothing of one is
kept, or goes on to anybody.
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
"""By how much the issuer's clock may differ from this one."""
MAX_TOKEN_CHARS: Final = 16 * 1024
MIN_RSA_BITS: Final = 2048

_LAST_MOMENT: Final = 253_370_764_800.0
"""The year 9999 begins."""

_KEY_TYPES: Final = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "RSA"),
    **dict.fromkeys(("ES256", "ES384", "ES512"), "EC"),
    "EdDSA": "OKP",
}
"""The algorithms that are taken: with a public key, never with a shared secret, and never none."""

_log = structlog.get_logger(__name__)


class OAuthIssuer:
    """Verifies the tokens of one issuer. Satisfies ``door.Issuer``."""

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
            return AuthorizationDenied("invalid", "no JSON Web Token.")
        try:
            header = jwt.get_unverified_header(token)
        except (PyJWTError, ValueError):
            return AuthorizationDenied("invalid", "no JSON Web Token.")
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in _KEY_TYPES:
            return AuthorizationDenied(
                "invalid", f"signed in a way that is not taken; alg may be {', '.join(_KEY_TYPES)}."
            )
        if kid is not None and not isinstance(kid, str):
            return AuthorizationDenied("invalid", "no JSON Web Token: kid is no text.")
        try:
            found = await self._keys.find(kid)
        except IssuerUnavailableError as error:
            _log.warning("a token cannot be verified", issuer=self._resource.issuer, reason=str(error))
            return AuthorizationDenied(
                "unavailable", f"The keys of {self._resource.issuer} cannot be had now; come back later."
            )
        key = _key_for(algorithm, found)
        if key is None:
            return AuthorizationDenied("invalid", f"not signed by a key that {self._resource.issuer} has.")
        return self._judge(token, key, algorithm)

    def _judge(self, token: str, key: PyJWK, algorithm: str) -> Authorization | AuthorizationDenied:
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
            return AuthorizationDenied("invalid", self._words(error))
        if expires_at > _LAST_MOMENT:
            return AuthorizationDenied("invalid", "good for ever: exp is no moment.")
        return self._resource.authorize(claims, toolsets)

    def _words(self, error: Exception) -> str:
        """What is wrong, to be read after *the token is*."""
        match error:
            case ExpiredSignatureError():
                return f"expired; get a new one from {self._resource.issuer}."
            case ImmatureSignatureError():
                return "not good yet."
            case InvalidAudienceError():
                return f"for another audience; get one for {self._resource.audience}."
            case InvalidIssuerError():
                return f"of another issuer; get one from {self._resource.issuer}."
            case MissingRequiredClaimError(claim=claim):
                return f"without {claim}."
            case _:
                return f"not one that {self._resource.issuer} has signed."


def _key_for(algorithm: str, found: list[Jwk]) -> PyJWK | None:
    """The one key that may have signed by this algorithm; None also where several may, since the token names none."""
    fitting = [
        key for key in found if key.get("kty") == _KEY_TYPES[algorithm] and key.get("alg", algorithm) == algorithm
    ]
    if len(fitting) != 1:
        return None
    try:
        key = PyJWK(fitting[0], algorithm)
    except (PyJWTError, ValueError, TypeError, KeyError):
        return None
    bits: Any = getattr(key.key, "key_size", MIN_RSA_BITS)
    return key if key.key_type != "RSA" or bits >= MIN_RSA_BITS else None
