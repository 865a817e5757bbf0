"""Plain HTTP to either vendor, where its SDK cannot be imported."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from .completion import OnDelta
from .connections import Connections
from .question import Body
from .road import CONNECT_TIMEOUT_S, Attempts, Errors, ReadChunk
from .vendor import Access, Vendor


def http_timeout(attempts: Attempts) -> httpx.Timeout:
    """The attempt's time for each wait, and less for the connection."""
    return httpx.Timeout(attempts.timeout_s, connect=min(CONNECT_TIMEOUT_S, attempts.timeout_s))


class HttpRoad:
    """Posts to ``{base_url}/chat/completions``, the address that both vendors' SDKs post to. Never tries twice."""

    def __init__(self, vendor: Vendor, access: Access) -> None:
        self.name = f"httpx {httpx.__version__}"
        self._access = access
        self._errors = Errors(vendor, access)
        self._connections = Connections(access, httpx.AsyncClient)

    async def ask(self, body: Body, attempts: Attempts) -> Any:
        async with self._post(body, attempts) as response:
            await response.aread()
            try:
                return response.json()
            except ValueError as error:
                raise self._errors.not_json() from error

    async def stream(self, body: Body, attempts: Attempts, read: ReadChunk, on_delta: OnDelta) -> None:
        async with self._post(body, attempts) as response:
            async for line in response.aiter_lines():
                field, _, value = line.partition(":")
                if field != "data":
                    continue
                if value.strip() == "[DONE]":
                    return
                delta = read(self._chunk(value))
                if delta is not None:
                    on_delta(delta)

    def _chunk(self, data: str) -> Any:
        try:
            chunk = json.loads(data)
        except ValueError as error:
            raise self._errors.not_json() from error
        if isinstance(chunk, dict) and chunk.get("error"):
            raise self._errors.broken_stream(chunk["error"])
        return chunk

    @asynccontextmanager
    async def _post(self, body: Body, attempts: Attempts) -> AsyncIterator[httpx.Response]:
        """The answer, if it is one; raises ``CallError`` for refusals and for what the connection does meanwhile."""
        try:
            async with (
                self._connections.lend() as client,
                client.stream(
                    "POST",
                    f"{self._access.base_url.rstrip('/')}/chat/completions",
                    json=body,
                    headers={"Authorization": f"Bearer {self._access.api_key.get_secret_value()}"},
                    timeout=http_timeout(attempts),
                ) as response,
            ):
                if response.is_error:
                    await response.aread()
                    raise self._errors.refused(response.status_code, response.text, response.headers)
                yield response
        except httpx.TimeoutException as error:
            raise self._errors.timed_out(error, attempts) from error
        except httpx.TransportError as error:
            raise self._errors.unreachable(error) from error

    async def close(self) -> None:
        await self._connections.aclose()
