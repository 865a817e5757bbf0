"""Plain HTTP to any vendor, used if its SDK cannot be imported."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import httpx

from ..protocol.json_text import InvalidJsonError, parse_json
from .call_connections import CallConnections
from .completion import OnDelta
from .event_stream import EventDecoder
from .request_body import Body
from .vendor_info import VendorAccess, VendorInfo
from .vendor_transport import (
    CONNECT_TIMEOUT_S,
    END_OF_STREAM,
    ApiAnswer,
    ApiRequest,
    AttemptPlan,
    ReadChunk,
    TransportErrors,
    deliver,
    is_event_stream,
)


def http_timeout(attempts: AttemptPlan) -> httpx.Timeout:
    """Returns the attempt's timeout for each wait, and a shorter timeout for the connection."""
    return httpx.Timeout(attempts.timeout_s, connect=min(CONNECT_TIMEOUT_S, attempts.timeout_s))


class HttpTransport:
    """Sends requests to the same URLs as the vendors' SDKs. Never retries."""

    def __init__(self, vendor: VendorInfo, access: VendorAccess) -> None:
        self.name = f"httpx {httpx.__version__}"
        self._access = access
        self._errors = TransportErrors(vendor, access)
        self._connections = CallConnections(access, httpx.AsyncClient)

    async def ask(self, body: Body, attempts: AttemptPlan) -> tuple[Any, Mapping[str, str]]:
        async with self._send("POST", "/chat/completions", attempts, json=body) as response:
            return await self._document(response), dict(response.headers)

    async def stream(self, body: Body, attempts: AttemptPlan, read: ReadChunk, on_delta: OnDelta) -> Mapping[str, str]:
        async with self._send("POST", "/chat/completions", attempts, json=body) as response:
            headers = dict(response.headers)
            if not is_event_stream(headers):
                deliver(read, await self._document(response), on_delta)
                return headers
            decoder = EventDecoder()
            async for piece in response.aiter_bytes():
                for data in decoder.feed(piece):
                    if data.strip() == END_OF_STREAM:
                        return headers
                    deliver(read, self._chunk(data), on_delta)
            for data in decoder.end():
                with suppress(InvalidJsonError):  # a truncated event has no finish reason
                    deliver(read, self._errors.checked(parse_json(data)), on_delta)
            return headers

    async def send(self, request: ApiRequest, attempts: AttemptPlan) -> ApiAnswer:
        content: dict[str, Any] = {"params": dict(request.query)}
        if request.upload is not None:
            content |= {"data": request.body, "files": {"file": (request.upload.name, request.upload.content)}}
        elif request.body is not None:
            content["json"] = request.body
        async with self._send(request.method, request.path, attempts, **content) as response:
            if request.max_bytes is None:
                return ApiAnswer(await response.aread(), dict(response.headers))
            read = bytearray()
            async for piece in response.aiter_bytes():
                read += piece
                if len(read) > request.max_bytes:
                    raise self._errors.not_understood(f"it has more than {request.max_bytes:,} bytes")
            return ApiAnswer(bytes(read), dict(response.headers))

    def _chunk(self, data: str) -> Any:
        try:
            return self._errors.checked(parse_json(data))
        except InvalidJsonError as error:
            raise self._errors.not_json(error) from error

    async def _document(self, response: httpx.Response) -> Any:
        """Returns the whole body of a successful response."""
        return self._errors.document(await response.aread(), response.headers)

    @asynccontextmanager
    async def _send(
        self, method: str, path: str, attempts: AttemptPlan, **content: Any
    ) -> AsyncIterator[httpx.Response]:
        """Yields a successful response. Raises ``CallError`` for error responses and connection failures.

        A redirect is an error, so that the key is never sent elsewhere.
        """
        try:
            async with (
                self._connections.acquire() as client,
                client.stream(
                    method,
                    f"{self._access.base_url.rstrip('/')}{path}",
                    headers={
                        **self._access.headers,
                        "Authorization": f"Bearer {self._access.api_key.get_secret_value()}",
                    },
                    timeout=http_timeout(attempts),
                    **content,
                ) as response,
            ):
                if not response.is_success:
                    await response.aread()
                    raise self._errors.refused(response.status_code, response.text, response.headers)
                yield response
        except httpx.TimeoutException as error:
            raise self._errors.timed_out(error, attempts) from error
        except httpx.TransportError as error:
            raise self._errors.unreachable(error) from error

    async def close(self) -> None:
        await self._connections.aclose()
