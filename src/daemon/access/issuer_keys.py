"""An issuer's public keys: found by its metadata, fetched within bounds, kept, and asked for again where one is new."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import msgspec
import structlog

FETCH_TIMEOUT_S: Final = 5.0
"""Of each request to the issuer, whatever it does."""
MAX_BYTES: Final = 512 * 1024
"""Of an answer; a set of a hundred keys has some 50 KiB."""
KEEP_S: Final = 3600.0
"""After so long the keys are fetched anew with the next token: one that was taken back is good no longer than this."""
STALE_S: Final = 86_400.0
"""While the issuer is away, its last keys are good for so long."""
AGAIN_S: Final = 30.0
"""Tokens of unknown keys, which anybody can make up, have the issuer asked no more often."""
RETRY_S: Final = 5.0
"""After it could not be asked."""

_SIGNING_TYPES: Final = frozenset({"RSA", "EC", "OKP"})

_log = structlog.get_logger(__name__)

Jwk = dict[str, Any]


class IssuerUnavailableError(Exception):
    """There are no keys, and none can be had now. The message says why."""


class IssuerKeys:
    """The keys of one issuer. On the event loop's thread only."""

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

    async def find(self, kid: str | None) -> list[Jwk]:
        """The keys of this id; without one, all of them.

        Raises:
            IssuerUnavailableError: there are none yet.
        """
        found = self._of(kid)
        if not found or self._age() > KEEP_S:
            async with self._fetching:  # one asks for all who wait
                found = self._of(kid)
                if (not found or self._age() > KEEP_S) and self._may_ask():
                    await self._fetch()
                    found = self._of(kid)
        if self._age() > STALE_S:
            raise IssuerUnavailableError(self._failed or "it was not asked yet")
        return found

    def _of(self, kid: str | None) -> list[Jwk]:
        return [key for key in self._keys if kid is None or key.get("kid") == kid]

    def _age(self) -> float:
        return float("inf") if self._fetched_at is None else self._clock() - self._fetched_at

    def _may_ask(self) -> bool:
        if self._tried_at is None:
            return True
        return self._clock() - self._tried_at >= (RETRY_S if self._failed else AGAIN_S)

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
            _log.warning("the issuer's keys cannot be had", issuer=self._issuer, reason=self._failed)
            return
        keys = document.get("keys")
        self._keys = [key for key in keys if _signs(key)] if isinstance(keys, list) else []
        self._fetched_at, self._failed = self._clock(), None
        _log.info("issuer's keys", issuer=self._issuer, keys=len(self._keys))

    async def _jwks_uri(self, client: httpx.AsyncClient) -> str:
        """Where the keys are, by the first metadata that there is and that is this issuer's own.

        Raises:
            ValueError: there is none.
        """
        problem = "it has no metadata"
        for address in metadata_addresses(self._issuer):
            try:
                document = await _get(client, address)
            except ValueError as error:
                problem = str(error)
                continue
            if document.get("issuer") != self._issuer:
                raise ValueError(f"the metadata at {address} is another issuer's")
            uri = document.get("jwks_uri")
            # By http only where the issuer itself is asked so, which the settings allow on loopback alone.
            if isinstance(uri, str) and uri.startswith(("https://", f"{urlsplit(self._issuer).scheme}://")):
                return uri
            raise ValueError(f"the metadata at {address} has no jwks_uri that can be asked")
        raise ValueError(problem)


def metadata_addresses(issuer: str) -> list[str]:
    """Where an issuer's metadata may be (RFC 8414, OpenID Connect Discovery), in the order in which they are tried."""
    parts = urlsplit(issuer)
    host, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    addresses = [
        f"{host}/.well-known/oauth-authorization-server{path}",
        f"{host}/.well-known/openid-configuration{path}",
        f"{host}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(addresses))


async def _get(client: httpx.AsyncClient, address: str) -> dict[str, Any]:
    """A JSON object.

    Raises:
        httpx.HTTPError: nobody answers.
        ValueError: the answer is another one.
    """
    body = bytearray()
    # Not packed, and not unpacked: a few bytes could stand for gigabytes before they are counted.
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    async with client.stream("GET", address, headers=headers) as answer:
        if answer.status_code != 200:
            raise ValueError(f"{address} answers HTTP {answer.status_code}")
        async for part in answer.aiter_raw():
            body += part
            if len(body) > MAX_BYTES:
                raise ValueError(f"{address} answers more than {MAX_BYTES} bytes")
    try:
        document = msgspec.json.decode(bytes(body))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        document = None
    if isinstance(document, dict):
        return document
    raise ValueError(f"{address} answers no JSON object")


def _signs(key: object) -> bool:
    """Whether it is a public key for signatures; a shared secret, which would be anybody's here, is none."""
    return isinstance(key, dict) and key.get("kty") in _SIGNING_TYPES and key.get("use", "sig") == "sig"
