"""The plain HTTP transport: events, keys, redirects, connection errors."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from toold.protocol.error_codes import ProviderError, ServiceUnavailableError
from toold.providers import KIMI, Delta, VendorAccess
from toold.providers.call_connections import CallConnections
from toold.providers.http_transport import HttpTransport, http_timeout
from toold.providers.vendor_transport import AttemptPlan

ATTEMPT = AttemptPlan(timeout_s=30.0, retries=0)


class Pieces(httpx.AsyncByteStream):
    """A response body in arbitrary pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def route(answer: Any) -> HttpTransport:
    """A transport whose connection gives the passed answer."""
    http_transport = HttpTransport(
        KIMI, VendorAccess(api_key=SecretStr("sk-test-key"), base_url="http://vendor.test/v1/", limit=1)
    )
    http_transport._connections = CallConnections(
        http_transport._access, partial(httpx.AsyncClient, transport=httpx.MockTransport(answer))
    )
    return http_transport


async def read(answer: Any) -> list[Any]:
    """The decoded chunks of a stream."""
    chunks: list[Any] = []
    way = route(answer)

    def keep(chunk: Any) -> Delta | None:
        chunks.append(chunk)
        return None

    try:
        await way.stream({}, ATTEMPT, keep, lambda _: None)
    finally:
        await way.close()
    return chunks


async def test_events_are_read_regardless_of_splits() -> None:
    """Comments, other fields, missing spaces, and splits within a line or a character do not matter."""
    events = (': ping\r\n\r\nevent: x\nid: 1\ndata: {"a": "é"}', 'data:{"b": 2}', "data: [DONE]", 'data: {"c": 3}\n\n')
    wire = "\n\n".join(events).encode()
    for size in (1, 2, 7, 1000):
        cut = [wire[i : i + size] for i in range(0, len(wire), size)]
        assert await read(lambda _, cut=cut: httpx.Response(200, stream=Pieces(*cut))) == [{"a": "é"}, {"b": 2}]


async def test_key_is_sent_only_in_the_header() -> None:
    """The request has the key as a bearer token, its body has no key, and its path is relative to the base URL."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"ok": True})

    way = route(answer)
    assert (await way.ask({"model": "m"}, ATTEMPT))[0] == {"ok": True}
    await way.close()
    assert seen[0].headers["authorization"] == "Bearer sk-test-key"
    assert str(seen[0].url) == "http://vendor.test/v1/chat/completions"
    assert seen[0].content == b'{"model":"m"}'


async def test_redirects_are_not_followed() -> None:
    """A redirect is an error, so that the key reaches no other server."""
    with pytest.raises(ProviderError, match="HTTP 302"):
        await route(lambda _: httpx.Response(302, headers={"location": "http://other.test/"})).ask({}, ATTEMPT)


@pytest.mark.parametrize(
    ("error", "executed"),
    [(httpx.ConnectError("no"), "no"), (httpx.ReadError("cut"), "maybe")],
    ids=["connect", "read"],
)
async def test_connection_errors_distinguish_connect_from_read(error: httpx.TransportError, executed: str) -> None:
    """If the connection failed before the request was sent, nothing was executed."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(ServiceUnavailableError) as caught:
        await route(answer).ask({}, ATTEMPT)
    assert caught.value.executed == executed


def test_connect_timeout_is_shorter_than_the_attempt() -> None:
    """Connecting has at most 8 s, and never more than the attempt."""
    assert http_timeout(AttemptPlan(25.0, 0)) == httpx.Timeout(25.0, connect=8.0)
    assert http_timeout(AttemptPlan(2.0, 0)) == httpx.Timeout(2.0)
