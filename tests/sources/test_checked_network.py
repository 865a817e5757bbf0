"""Connections go to checked addresses, and end with a call that fails."""

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpcore
import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from toold.sources.address_policy import AddressPolicy
from toold.sources.checked_network import CheckedNetwork, ForbiddenAddressError


@pytest.fixture
async def network_of() -> AsyncIterator[Callable[[bool | tuple[str, ...]], CheckedNetwork]]:
    """A function that creates a network with this ``allow_private``."""
    created: list[CheckedNetwork] = []

    def make(allow_private: bool | tuple[str, ...]) -> CheckedNetwork:
        created.append(CheckedNetwork(AddressPolicy(allow_private)))
        return created[-1]

    yield make
    for network in created:
        await network.close()


async def get(network: CheckedNetwork, url: str, sent: list[bool] | None = None) -> bytes:
    sent = [] if sent is None else sent
    request = httpx.Request("GET", url)
    async with network.acquire() as connection, connection.answer(request, lambda: sent.append(True)) as answer:
        return await answer.aread()


async def test_connections_are_reused(api: Any, network_of: Any) -> None:
    """Consecutive requests use the same connection."""
    network, peers = network_of(True), set()

    async def answer(request: Request) -> Response:
        peers.add(request.scope["client"])
        return Response("here")

    api.answers = [answer]
    assert [await get(network, api.url) for _ in range(3)] == [b"here"] * 3
    assert len(peers) == 1


async def test_loopback_is_forbidden_before_anything_is_sent(api: Any, network_of: Any) -> None:
    """By address or by name; the error gives the reason."""
    network, sent = network_of(False), list[bool]()
    for url in (api.url, api.url.replace("127.0.0.1", "localhost"), f"http://[::ffff:127.0.0.1]:{api.port}/"):
        with pytest.raises(ForbiddenAddressError, match="is loopback; the source's allow_private can allow it"):
            await get(network, url, sent)
    assert not sent
    assert not api.asked


async def test_the_checked_address_is_the_one_connected_to(
    api: Any, network_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that resolves to another address later is not resolved a second time (DNS rebinding)."""
    answers = [["8.8.8.8"], ["127.0.0.1"]]
    loop = asyncio.get_running_loop()

    async def rebound(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers[-1]]

    monkeypatch.setattr(type(loop), "getaddrinfo", lambda _, host, port, **more: rebound(host, port, **more))
    with pytest.raises(ForbiddenAddressError, match=r"rebound\.example \(127\.0\.0\.1\) is loopback"):
        await get(network_of(False), f"http://rebound.example:{api.port}/")
    assert not api.asked


async def test_all_allowed_addresses_of_a_host_are_tried(
    api: Any, network_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If one address refuses the connection, the next one is tried."""
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.2", 0)) as dead:
        dead_port = dead.getsockname()[1]

    async def two(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(type(loop), "getaddrinfo", lambda _, host, port, **more: two(host, port, **more))
    network = network_of(("crm.internal",))
    assert await get(network, f"http://crm.internal:{api.port}/")
    with pytest.raises(httpcore.ConnectError):
        await get(network, f"http://crm.internal:{dead_port}/")


async def test_an_unknown_host_is_a_connect_error(network_of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was sent."""
    loop, sent = asyncio.get_running_loop(), list[bool]()

    async def unknown(*_: Any, **__: Any) -> list[Any]:
        raise socket.gaierror("unknown")

    monkeypatch.setattr(type(loop), "getaddrinfo", unknown)
    with pytest.raises(httpcore.ConnectError, match=r"nowhere\.example cannot be resolved"):
        await get(network_of(True), "http://nowhere.example/", sent)
    assert not sent


async def test_a_cancelled_request_closes_its_connection(api: Any, network_of: Any) -> None:
    """The server sees its peer disconnect, and no socket stays open."""
    entered, left = asyncio.Event(), asyncio.Event()

    async def hang(http: Request) -> Response:
        entered.set()
        while not await http.is_disconnected():
            await asyncio.sleep(0.01)
        left.set()
        return Response()

    api.answers = [hang]
    network = network_of(True)
    request = asyncio.create_task(get(network, api.url))
    await entered.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    async with asyncio.timeout(20):
        await left.wait()
    await network.close()
    gc.collect()  # an open socket would warn, and fail the test


async def test_a_connection_cancelled_before_tls_is_closed(network_of: Any) -> None:
    """Even though the pool has lost it."""
    greeted, left = asyncio.Event(), asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        greeted.set()
        while await reader.read(1000):
            pass
        left.set()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        request = asyncio.create_task(get(network_of(True), f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
        await greeted.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        async with asyncio.timeout(30):
            await left.wait()


async def test_tiny_parts_leave_turns_to_others(network_of: Any) -> None:
    """A server may send each byte as a separate part; thousands of them are there at once."""
    parts, turns = 10_000, 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * parts + b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    counting = asyncio.create_task(count_turns())
    request = httpx.Request("GET", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
    async with network_of(True).acquire() as connection, connection.answer(request, lambda: None) as answer:
        seen = Counter([turns async for _ in answer.aiter_raw()])
    counting.cancel()
    server.close()
    assert seen.total() == parts
    assert max(seen.values()) <= 64
