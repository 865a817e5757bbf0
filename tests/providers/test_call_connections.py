"""Clients for one call each: kept after a call that ended by itself, closed with all they hold after any other."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import httpx
import pytest
from pydantic import SecretStr
from toold.providers import VendorAccess
from toold.providers.call_connections import CallConnections, wait_until_done

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
NONSENSE = b"no such protocol\r\n\r\n"
ACCESS = VendorAccess(api_key=SecretStr("sim-key"), base_url="", limit=1, simulated=True)


@dataclass
class Peer:
    """A server that knows who is connected."""

    answer: bytes = ANSWER
    """What it answers, if anything; it never closes a connection first."""
    port: int = 0
    connected: int = 0
    seen: int = 0
    asked: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until_connected(self, count: int) -> None:
        await self._until(lambda: self.connected == count)

    async def until_asked(self, count: int) -> None:
        await self._until(lambda: self.asked == count)

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(30), self.changed:
            await self.changed.wait_for(condition)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._count(connected=1, seen=1)
        try:
            with contextlib.suppress(ConnectionError):
                while await reader.read(65536):
                    await self._count(asked=1)
                    writer.write(self.answer)
        finally:
            writer.close()
            await self._count(connected=-1)

    async def _count(self, *, connected: int = 0, seen: int = 0, asked: int = 0) -> None:
        self.connected += connected
        self.seen += seen
        self.asked += asked
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
    async with connections.lend() as client:
        return (await client.get(f"{scheme}://127.0.0.1:{peer.port}/", timeout=30)).text


async def test_a_connection_serves_one_call_after_another(
    connections: CallConnections[httpx.AsyncClient], peer: Peer
) -> None:
    """Calls in turn share a connection; calls at once have one each."""
    for _ in range(3):
        assert await ask(connections, peer) == "ok"
    assert peer.seen == 1
    assert list(await asyncio.gather(ask(connections, peer), ask(connections, peer))) == ["ok", "ok"]
    assert peer.seen == 2


async def test_a_call_that_fails_takes_its_connection_along(
    connections: CallConnections[httpx.AsyncClient], peer: Peer
) -> None:
    """What raises within the block may have left the connection in any state: it is closed, and the next is new."""
    with contextlib.suppress(KeyError):
        async with connections.lend() as client:
            await client.get(f"http://127.0.0.1:{peer.port}/")
            raise KeyError
    assert client.is_closed
    await peer.until_connected(0)
    assert await ask(connections, peer) == "ok"
    assert peer.seen == 2


@pytest.mark.parametrize("answer", [ANSWER, NONSENSE], ids=["answer", "nonsense"])
async def test_no_instant_of_a_cancel_loses_a_connection(
    connections: CallConnections[httpx.AsyncClient], peer: Peer, answer: bytes
) -> None:
    """A call cancelled after any number of the loop's turns ends as told, and at most the idle connection is left.

    After nonsense the client closes the connection by itself: the cancel then comes upon its cleaning up.
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


async def test_a_cancel_within_the_closing_changes_nothing(peer: Peer) -> None:
    """A client that takes a while to close is closed all the same when the call is cancelled again meanwhile."""
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


async def test_a_handshake_that_hangs_is_cut_off(connections: CallConnections[httpx.AsyncClient], peer: Peer) -> None:
    """A cancel between TCP and TLS closes a connection that the client itself has not taken over yet."""
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
    """``aclose`` closes the connections of running calls, which fail by it, and of idle ones."""
    assert await ask(connections, peer) == "ok"
    peer.answer = b""
    asking = asyncio.gather(ask(connections, peer), ask(connections, peer), return_exceptions=True)
    await peer.until_asked(3)
    await connections.aclose()
    await peer.until_connected(0)
    assert all(isinstance(error, httpx.TransportError) for error in await asking)


async def test_a_call_that_outlives_the_closing_closes_behind_itself(
    connections: CallConnections[httpx.AsyncClient], peer: Peer
) -> None:
    """A connection that was being made while all were closed goes with its call, and its client is not lent again."""
    asking = asyncio.create_task(ask(connections, peer))
    while not connections._open:
        await asyncio.sleep(0)
    await connections.aclose()
    await asyncio.gather(asking, return_exceptions=True)
    await peer.until_connected(0)
    assert await ask(connections, peer) == "ok"


async def test_waiting_for_the_end_survives_cancels() -> None:
    """``ended`` returns only when the work has, and then raises the cancel that it was told of meanwhile."""
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
