"""An issuer's public keys: discovered through its metadata, fetched with limits, cached, and refreshed for new keys."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
import structlog

FETCH_TIMEOUT_S: Final = 5.0
"""The timeout of each request to the issuer."""
MAX_BYTES: Final = 512 * 1024
"""The limit of a response; a set of a hundred keys is about 50 KiB."""
REFRESH_S: Final = 3600.0
"""Older keys are fetched again when the next token arrives; this limits how long a withdrawn key is accepted."""
STALE_S: Final = 86_400.0
"""While the issuer is unreachable, its last keys are valid for this long."""
UNKNOWN_KEY_S: Final = 30.0
"""The minimum interval between refreshes for unknown key ids, because anyone can invent key ids."""
RETRY_S: Final = 5.0
"""The minimum interval after a failed request."""

_SIGNING_TYPES: Final = frozenset({"RSA", "EC", "OKP"})

_log = structlog.get_logger(__name__)

Jwk = dict[str, Any]


class IssuerUnavailableError(Exception):
    """No keys are available at present. The message gives the reason."""


class IssuerKeys:
    """The keys of one issuer. Use on the event loop's thread only."""

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._issuer = issuer
        self._clock = clock
        self._keys: list[Jwk] = []
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        self._failed: str | None = None
        self._fetching = asyncio.Lock()

    def __repr__(self) -> str:
        return f"<IssuerKeys of {self._issuer}: {len(self._keys)}>"

    async def keys_for(self, kid: str | None) -> list[Jwk]:
        """Returns the keys with this id; without an id, all keys.

        Raises:
            IssuerUnavailableError: no keys could be fetched.
        """
        keys = self._of(kid)
        if not keys or self._age() > REFRESH_S:
            async with self._fetching:  # one request for all waiting callers
                keys = self._of(kid)
                if (not keys or self._age() > REFRESH_S) and self._may_fetch():
                    await self._fetch()
                    keys = self._of(kid)
        if self._age() > STALE_S:
            raise IssuerUnavailableError(self._failed or "it has not been contacted yet")
        return keys

    def _of(self, kid: str | None) -> list[Jwk]:
        return [key for key in self._keys if kid is None or key.get("kid") == kid]

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else self._clock() - self._fetched_at

    def _may_fetch(self) -> bool:
        if self._tried_at is None:
            return True
        return self._clock() - self._tried_at >= (RETRY_S if self._failed else UNKNOWN_KEY_S)

    async def _fetch(self) -> None:
        self._tried_at = self._clock()
        try:
            async with (
                asyncio.timeout(2 * FETCH_TIMEOUT_S),
                httpx.AsyncClient(timeout=FETCH_TIMEOUT_S, follow_redirects=False) as client,
            ):
                document = await _get(client, await self._jwks_uri(client))
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, ValueError) as error:
            self._failed = str(error) or type(error).__name__
            _log.warning("cannot fetch the issuer's keys", issuer=self._issuer, reason=self._failed)
            return
        keys = document.get("keys")
        self._keys = [key for key in keys if _signs(key)] if isinstance(keys, list) else []
        self._fetched_at, self._failed = self._clock(), None
        _log.info("issuer's keys fetched", issuer=self._issuer, keys=len(self._keys))

    async def _jwks_uri(self, client: httpx.AsyncClient) -> str:
        """Returns the URL of the keys, from the first metadata document that exists.

        Raises:
            ValueError: there is no metadata, or it is invalid.
        """
        problem = "the issuer has no metadata"
        for address in metadata_addresses(self._issuer):
            try:
                document = await _get(client, address)
            except ValueError as error:
                problem = str(error)
                continue
            if document.get("issuer") != self._issuer:
                raise ValueError(f"the metadata at {address} belongs to another issuer")
            uri = document.get("jwks_uri")
            # http is accepted only if the issuer itself uses it, which the settings allow on loopback only.
            if isinstance(uri, str) and uri.startswith(("https://", f"{urlsplit(self._issuer).scheme}://")):
                return uri
            raise ValueError(f"the metadata at {address} has no usable jwks_uri")
        raise ValueError(problem)


def metadata_addresses(issuer: str) -> list[str]:
    """Returns the URLs at which to look for an issuer's metadata (RFC 8414, OpenID Connect Discovery), in order."""
    parts = urlsplit(issuer)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    addresses = [
        f"{host}/.well-known/oauth-authorization-server{path}",
        f"{host}/.well-known/openid-configuration{path}",
        f"{host}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(addresses))


async def _get(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    """Fetches a JSON object.

    Raises:
        httpx.HTTPError: the request failed.
        ValueError: the response is not a JSON object of acceptable size.
    """
    body = bytearray()
    # No compression: a few bytes could expand to gigabytes before the limit applies.
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    async with client.stream("GET", address, headers=headers) as response:
        if response.status_code != 200:
            raise ValueError(f"{address} returned HTTP {response.status_code}")
        async for part in response.aiter_raw():
            body += part
            if len(body) > MAX_BYTES:
                raise ValueError(f"{address} returned more than {MAX_BYTES} bytes")
    try:
        document = msgspec.json.decode(bytes(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict):
        return document
    raise ValueError(f"{address} did not return a JSON object")


def _signs(key: object) -> bool:
    """Whether it is a public signing key. Symmetric keys are rejected: anyone could sign with a published one."""
    return isinstance(key, dict) and key.get("kty") in _SIGNING_TYPES and key.get("use", "sig") == "sig"
