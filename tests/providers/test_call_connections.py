"""Clients that serve one call at a time: kept after a successful call, closed with their connections otherwise."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx
import pytest
from pydantic import SecretStr
from toold.providers import VendorAccess
from toold.providers.call_connections import CallConnections, trusted_certificates, wait_until_done

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NONSENSE = b"no such protocol\r\n\r\n"
ACCESS = VendorAccess(api_key=SecretStr("sim-key"), base_url="", limit=1, simulated=True)


@dataclass
class Peer:
    """A server that counts its connections and requests."""

    answer: bytes = ANSWER
    """The bytes that it answers, possibly none. It never closes a connection first."""
    port: int = 0
    connected: int = 0
    seen: int = 0
    request_count: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_connected(self, count: int) -> None:
        await self._until(lambda: self.connected == count)

    async def until_asked(self, count: int) -> None:
        await self._until(lambda: self.request_count == count)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(connected=1, seen=1)
        try:
            with contextlib.suppress(ConnectionError):
                while await reader.read(65536):
                    await self._count(request_count=1)
                    writer.write(self.answer)
        finally:
            writer.close()
            await self._count(connected=-1)

    async def _count(self, *, connected: int = 0, seen: int = 0, request_count: int = 0) -> None:
        self.connected += connected
        self.seen += seen
        self.request_count += request_count
        async with self.changed:
            self.changed.notify_all()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    peer.port = server.sockets[0].getsockname()[1]
    async with server:
        yield peer
        await peer.until_connected(0)


@pytest.fixture
async def connections(peer: Peer) -> AsyncIterator[CallConnections[httpx.AsyncClient]]:
    connections = CallConnections(ACCESS, httpx.AsyncClient)
    yield connections
    await connections.aclose()


async def ask(connections: CallConnections[httpx.AsyncClient], peer: Peer, *, scheme: str = "http") -> str:
    async with connections.acquire() as client:
        return (await client.get(f"{scheme}://127.0.0.1:{peer.port}/", timeout=30)).text


async def test_sequential_calls_share_a_connection(connections: CallConnections[httpx.AsyncClient], peer: Peer) -> None:
    """Sequential calls share a connection. Concurrent calls have one connection each."""
    for _ in range(3):
        assert await ask(connections, peer) == "ok"
    assert peer.seen == 1
    assert list(await asyncio.gather(ask(connections, peer), ask(connections, peer))) == ["ok", "ok"]
    assert peer.seen == 2


async def test_failed_call_closes_its_connection(connections: CallConnections[httpx.AsyncClient], peer: Peer) -> None:
    """An exception within the block can leave the connection in any state, so it is closed and the next call opens a
    new one.
    """
    with contextlib.suppress(KeyError):
        async with connections.acquire() as client:
            await client.get(f"http://127.0.0.1:{peer.port}/")
            raise KeyError
    assert client.is_closed
    await peer.until_connected(0)
    assert await ask(connections, peer) == "ok"
    assert peer.seen == 2


@pytest.mark.parametrize("answer", [ANSWER, NONSENSE], ids=["answer", "nonsense"])
async def test_cancel_at_any_moment_loses_no_connection(
    connections: CallConnections[httpx.AsyncClient], peer: Peer, answer: bytes
) -> None:
    """A call that is cancelled after any number of loop iterations leaves at most one idle connection.

    After an invalid response the client closes the connection itself, so the cancel arrives during its cleanup.
    """
    peer.answer = answer
    ends: Counter[str] = Counter()
    for turns in range(60):
        asking = asyncio.create_task(ask(connections, peer))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        (end,) = await asyncio.gather(asking, return_exceptions=True)
        ends[end if isinstance(end, str) else type(end).__name__] += 1
    assert set(ends) == {"CancelledError", "ok" if answer == ANSWER else "RemoteProtocolError"}
    peer.answer = ANSWER
    assert await ask(connections, peer) == "ok"
    await peer.until_connected(1)


async def test_repeated_cancels_do_not_prevent_closing(peer: Peer) -> None:
    """A client that closes slowly is closed even if the call is cancelled several times."""
    closed: list[bool] = []

    class Slow(httpx.AsyncClient):
        async def aclose(self) -> None:
            for _ in range(5):
                await asyncio.sleep(0)
            await super().aclose()
            closed.append(self.is_closed)

    peer.answer = b""
    connections: CallConnections[httpx.AsyncClient] = CallConnections(ACCESS, Slow)
    asking = asyncio.create_task(ask(connections, peer))
    await peer.until_asked(1)
    for _ in range(4):
        asking.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert closed == [True]
    await peer.until_connected(0)


async def test_cancel_closes_a_hung_tls_handshake(connections: CallConnections[httpx.AsyncClient], peer: Peer) -> None:
    """A cancel between TCP and TLS closes a connection that the client does not own yet."""
    peer.answer = b""
    asking = asyncio.create_task(ask(connections, peer, scheme="https"))
    await peer.until_connected(1)
    for _ in range(20):
        await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await peer.until_connected(0)


async def test_closing_ends_running_calls(connections: CallConnections[httpx.AsyncClient], peer: Peer) -> None:
    """``aclose`` closes idle connections and those of running calls, which then fail."""
    assert await ask(connections, peer) == "ok"
    peer.answer = b""
    asking = asyncio.gather(ask(connections, peer), ask(connections, peer), return_exceptions=True)
    await peer.until_asked(3)
    await connections.aclose()
    await peer.until_connected(0)
    assert all(isinstance(error, httpx.TransportError) for error in await asking)


async def test_connection_opened_during_closing_is_closed_with_its_call(
    connections: CallConnections[httpx.AsyncClient], peer: Peer
) -> None:
    """A connection that is being opened during ``aclose`` is closed with its call, and its client is not lent again."""
    asking = asyncio.create_task(ask(connections, peer))
    while not connections._open:
        await asyncio.sleep(0)
    await connections.aclose()
    await asyncio.gather(asking, return_exceptions=True)
    await peer.until_connected(0)
    assert await ask(connections, peer) == "ok"


async def test_wait_until_done_survives_cancels() -> None:
    """``wait_until_done`` returns only after the work has ended, and then raises the pending cancel."""
    work: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(wait_until_done(work))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    work.set_exception(KeyError("looked at"))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await wait_until_done(work)


def test_certificates_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """All vendors share them, unless a variable of the environment names others."""
    shared = trusted_certificates()
    assert trusted_certificates() is shared
    assert shared.get_ca_certs()
    monkeypatch.setenv("SSL_CERT_DIR", "/")
    assert trusted_certificates() is not shared
