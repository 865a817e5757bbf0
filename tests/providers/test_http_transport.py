"""Plain HTTP: what the wire may hold beside the vendors' own chunks."""

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
    """A body that comes in pieces, wherever they are cut."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


def road(answer: Any) -> HttpTransport:
    """A road whose connection answers as told."""
    made = HttpTransport(
        KIMI, VendorAccess(api_key=SecretStr("sk-test-key"), base_url="http://vendor.test/v1/", limit=1)
    )
    made._connections = CallConnections(made._access, partial(httpx.AsyncClient, transport=httpx.MockTransport(answer)))
    return made


async def read(answer: Any) -> list[Any]:
    """The chunks of a stream, as they were decoded."""
    chunks: list[Any] = []
    way = road(answer)

    def keep(chunk: Any) -> Delta | None:
        chunks.append(chunk)
        return None

    try:
        await way.stream({}, ATTEMPT, keep, lambda _: None)
    finally:
        await way.close()
    return chunks


async def test_events_are_read_however_they_are_cut() -> None:
    """Comments, other fields, missing blanks, and cuts within a line or a character change nothing."""
    events = (': ping\r\n\r\nevent: x\nid: 1\ndata: {"a": "é"}', 'data:{"b": 2}', "data: [DONE]", 'data: {"c": 3}\n\n')
    wire = "\n\n".join(events).encode()
    for size in (1, 2, 7, 1000):
        cut = [wire[i : i + size] for i in range(0, len(wire), size)]
        assert await read(lambda _, cut=cut: httpx.Response(200, stream=Pieces(*cut))) == [{"a": "é"}, {"b": 2}]


async def test_the_key_goes_into_the_header_alone() -> None:
    """The request bears the key as a bearer token, at the vendors' path below the base URL."""
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, json={"ok": True})

    way = road(answer)
    assert (await way.ask({"model": "m"}, ATTEMPT))[0] == {"ok": True}
    await way.close()
    assert seen[0].headers["authorization"] == "Bearer sk-test-key"
    assert str(seen[0].url) == "http://vendor.test/v1/chat/completions"
    assert seen[0].content == b'{"model":"m"}'


async def test_redirects_are_not_followed() -> None:
    """A vendor's address that redirects is not believed: the key goes nowhere else."""
    with pytest.raises(ProviderError, match="HTTP 302"):
        await road(lambda _: httpx.Response(302, headers={"location": "http://other.test/"})).ask({}, ATTEMPT)


@pytest.mark.parametrize(
    ("error", "executed"),
    [(httpx.ConnectError("no"), "no"), (httpx.ReadError("cut"), "maybe")],
    ids=["connect", "read"],
)
async def test_a_broken_connection_says_whether_it_was_made(error: httpx.TransportError, executed: str) -> None:
    """Nothing was executed where nothing was sent."""

    def answer(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(ServiceUnavailableError) as caught:
        await road(answer).ask({}, ATTEMPT)
    assert caught.value.executed == executed


def test_connecting_has_less_time_than_answering() -> None:
    """8 s to connect at most, and never more than the attempt has."""
    assert http_timeout(AttemptPlan(25.0, 0)) == httpx.Timeout(25.0, connect=8.0)
    assert http_timeout(AttemptPlan(2.0, 0)) == httpx.Timeout(2.0)
