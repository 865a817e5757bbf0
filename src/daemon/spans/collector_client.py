"""Sends one request to the collector of traces, and reports the outcome."""

import asyncio
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx

from ...protocol.retry_after import retry_after_ms
from ...version import __version__
from .otlp_encoding import PartialSuccess, decode_answer

TIMEOUT_S: Final = 10.0
"""The timeout of a whole request: the default of OTEL_EXPORTER_OTLP_TIMEOUT."""
RETRYABLE: Final = frozenset({429, 502, 503, 504})
"""The statuses after which OTLP permits a repeat of the same request; after other statuses it must not be repeated."""
_MAX_ANSWER_BYTES: Final = 64 * 1024

_ADVICE: Final[Mapping[int, str]] = {
    401: "check the headers of [otel]",
    403: "check the headers of [otel]",
    404: "check the endpoint of [otel]",
    405: "check the endpoint of [otel]",
    413: "raise the collector's limit for requests",
    415: "the collector must take OTLP over HTTP with protobuf",
}


@dataclass(frozen=True, slots=True)
class CollectorFailure:
    """A request that the collector did not accept."""

    reason: str
    """For the operator: one line, without a secret."""
    retryable: bool
    retry_after_s: float = 0.0
    """The delay that the collector requests."""


class CollectorClient:
    """A client of one collector. Use it on one event loop only, to which its connections belong."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self.url = url
        self._headers = {
            "User-Agent": f"toold/{__version__}",
            **headers,
            "Content-Type": "application/x-protobuf",
            "Content-Encoding": "gzip",
        }
        self._http: httpx.AsyncClient | None = None

    async def export(self, body: bytes, timeout_s: float = TIMEOUT_S) -> PartialSuccess | CollectorFailure:
        """Sends an encoded request. Never raises because of the collector."""
        if self._http is None:
            self._http = httpx.AsyncClient(timeout=TIMEOUT_S)
        try:
            async with (
                asyncio.timeout(timeout_s),
                self._http.stream("POST", self.url, headers=self._headers, content=gzip.compress(body)) as response,
            ):
                answer = b""
                async for piece in response.aiter_bytes():
                    answer += piece
                    if len(answer) > _MAX_ANSWER_BYTES:
                        break
        except (TimeoutError, httpx.TimeoutException):
            return CollectorFailure(f"no answer within {timeout_s:g} s", retryable=True)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return CollectorFailure(f"no answer: {str(error) or type(error).__name__}", retryable=True)
        return decode_answer(answer) if response.is_success else _refusal(response)

    async def close(self) -> None:
        """Closes the connections."""
        if self._http is not None:
            await self._http.aclose()


def _refusal(response: httpx.Response) -> CollectorFailure:
    status = response.status_code
    advice = _ADVICE.get(status)
    reason = f"HTTP {status}; {advice}" if advice else f"HTTP {status}"
    if status not in RETRYABLE:
        return CollectorFailure(reason, retryable=False)
    pause_ms = retry_after_ms(response.headers.get("retry-after"), datetime.now(UTC))
    return CollectorFailure(reason, retryable=True, retry_after_s=(pause_ms or 0) / 1000)
