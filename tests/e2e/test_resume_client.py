"""The client library across breaks, stalls, restarts and crashes: calls in flight return."""

import asyncio
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from toold.client import ConnectionLostError, MCPWebSocketClient, client_connection, reconnect_policy, request_exchange
from toold.protocol.error_codes import CallTimeoutError, OutcomeUnknownError
from toold.protocol.tool_call import Progress

PATIENCE_S = 40.0
"""The limit for events that take a second or two; no test passes by waiting for it."""

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Proxy:
    """A network between client and daemon that can be cut, even within a frame, or stop passing data."""

    def __init__(self, port: int) -> None:
        self.daemon_port = port
        self.accepted = 0
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            self.resume()
            self.cut()
            await server.wait_closed()
            while self._writers:
                await asyncio.sleep(0.001)

    def cut(self) -> None:
        """Reset every connection."""
        for writer in self._writers:
            writer.transport.abort()

    def stall(self) -> None:
        """Pass nothing and close nothing, like a lost network."""
        self._flows.clear()

    def resume(self) -> None:
        self._flows.set()

    async def _serve(self, *client: Any) -> None:
        self.accepted += 1
        try:
            daemon: Stream = await asyncio.open_connection("127.0.0.1", self.daemon_port)
        except ConnectionError:  # the client is disconnected
            client[1].transport.abort()
            return
        try:
            await asyncio.gather(self._pump(client[0], daemon[1]), self._pump(daemon[0], client[1]))
        finally:
            for writer in (client[1], daemon[1]):
                writer.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with suppress(ConnectionError):
                while data := await reader.read(65536):
                    await self._flows.wait()
                    writer.write(data)
                    await writer.drain()
        finally:
            self._writers.discard(writer)
            writer.close()


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients reconnect quickly, and find only the daemon of the test."""
    monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 0.05)
    monkeypatch.setattr(reconnect_policy, "MAX_DELAY_S", 0.2)
    for name in ("HOST", "PORT", "TOKEN"):
        monkeypatch.delenv(f"TOOLD_{name}", raising=False)
        monkeypatch.delenv(f"EXAI_WS_{name}", raising=False)


@pytest.fixture
async def proxy(daemon: Any) -> AsyncIterator[tuple[Proxy, int]]:
    """A network to the shared daemon."""
    network = Proxy(daemon.port)
    async with network.listening() as port:
        yield network, port


@pytest.fixture
async def client(daemon: Any, proxy: tuple[Proxy, int]) -> AsyncIterator[MCPWebSocketClient]:
    """A client behind the network."""
    async with MCPWebSocketClient("127.0.0.1", proxy[1], daemon.token) as connected:
        yield connected


@pytest.fixture
def network(proxy: tuple[Proxy, int]) -> Proxy:
    return proxy[0]


def executed(daemon: Any) -> Counter[str]:
    """The executions of ``sim_effect`` by text."""
    log = Path(daemon.state / "sim_effect.log")
    return Counter(log.read_text().split() if log.exists() else [])


def start(client: MCPWebSocketClient, text: str, delay_ms: int = 0, **options: Any) -> asyncio.Task[Any]:
    arguments = {"text": text, "delay_ms": delay_ms}
    return asyncio.create_task(client.call("sim_effect", arguments, **{"timeout": PATIENCE_S} | options))


async def test_a_call_returns_across_a_break(daemon: Any, client: MCPWebSocketClient, network: Proxy) -> None:
    """The call runs once; the next connection delivers its last progress and its answer."""
    reports: list[Progress] = []
    calling = start(client, "across-a-break", 400, on_progress=reports.append)
    await until(lambda: executed(daemon)["across-a-break"])
    reports.clear()
    network.cut()
    assert (await calling).text == "written: across-a-break"
    assert reports
    assert client.hello is not None
    assert client.hello.resumed
    assert executed(daemon)["across-a-break"] == 1


async def test_a_silent_connection_is_replaced(
    daemon: Any, client: MCPWebSocketClient, network: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two heartbeats the client reconnects, while the daemon still has the old connection open."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.1)
    monkeypatch.setattr(client_connection, "PING_TIMEOUT_S", 0.1)
    async with Proxy(daemon.port).listening() as other:
        await client.disconnect()
        assert await client.connect()  # with the short heartbeat
        calling = start(client, "silence", 300)
        await until(lambda: executed(daemon)["silence"])
        network.stall()
        client._request = type(client._request)("127.0.0.1", other, daemon.token)
        assert (await calling).text == "written: silence"
        assert isinstance(client.last_error, ConnectionLostError)
        assert client.last_error.close_code == 1011
    assert executed(daemon)["silence"] == 1


async def test_every_call_runs_once_across_random_breaks(daemon: Any) -> None:
    """Six clients, 150 writes and repeated breaks: nothing is lost and nothing runs twice."""
    dice = random.Random(11)  # noqa: S311 - to vary the moments, and the same at each run
    network = Proxy(daemon.port)
    all_connected = asyncio.Barrier(7)  # a busy machine could not connect between two breaks

    async def make_calls(port: int, number: int) -> None:
        async with MCPWebSocketClient("127.0.0.1", port, daemon.token) as client:
            await all_connected.wait()
            for group in range(5):
                texts = [f"cut-{number}-{group}-{item}" for item in range(5)]
                results = await asyncio.gather(*(start(client, text, dice.randrange(40)) for text in texts))
                assert [result.text for result in results] == [f"written: {text}" for text in texts]

    async def cut_now_and_then() -> None:
        await all_connected.wait()
        while True:
            await asyncio.sleep(dice.uniform(0.05, 0.15))
            network.cut()

    async with network.listening() as port:
        cutting = asyncio.create_task(cut_now_and_then())
        try:
            await asyncio.gather(*(make_calls(port, number) for number in range(6)))
        finally:
            cutting.cancel()
    counts = {text: count for text, count in executed(daemon).items() if text.startswith("cut-")}
    assert len(counts) == 150
    assert set(counts.values()) == {1}
    assert network.accepted > 6


async def test_delivered_answers_are_acknowledged(
    daemon: Any, client: MCPWebSocketClient, make_peer: Any, network: Proxy
) -> None:
    """Before it disconnects, the client acknowledges the answers that its callers got."""
    await start(client, "handed-over", request_id="mine")
    key = client._session.key
    await client.disconnect()
    async with make_peer(features=["resume"], resume={"key": key}) as peer:
        assert peer.ack["resumed"]
        await peer.send(op="call_status", request_ids=["mine"])
        assert (await peer.receive())["calls"] == {"mine": "expired"}


async def test_a_call_cancelled_while_disconnected_ends_on_the_daemon(
    daemon: Any, client: MCPWebSocketClient, network: Proxy, make_peer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cancel is sent after the resume."""
    monkeypatch.setattr(request_exchange, "GRACE_S", 0.0)
    calling = start(client, "given-up", 60_000, timeout=2, request_id="given-up")
    await until(lambda: executed(daemon)["given-up"])
    good, network.daemon_port = network.daemon_port, 1  # no server listens there
    network.cut()
    with pytest.raises(CallTimeoutError):
        await calling
    network.daemon_port = good
    await until(lambda: client.connected)
    async with make_peer(features=["ack"]) as watcher, asyncio.timeout(PATIENCE_S):
        while (await watcher.status())["limits"]["running"]["in_use"] > 1:  # the watcher's own call
            await asyncio.sleep(0.01)


# --- restarts and crashes --------------------------------------------------------------------------------------------


async def test_calls_survive_a_restart(start_daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stopping daemon finishes running calls, and the new one runs later calls."""
    first = start_daemon()
    monkeypatch.setenv("TOOLD_STATE_DIR", str(first.state))
    async with MCPWebSocketClient() as client:
        running = start(client, "running", 1000)
        await until(lambda: executed(first)["running"])
        first.process.send_signal(signal.SIGTERM)
        await until(lambda: client._link.connection is None or not client._link.accepts_calls)
        meanwhile = [start(client, f"meanwhile-{number}") for number in range(5)]
        assert (await running).text == "written: running"
        assert await asyncio.to_thread(first.process.wait, 30) == 0
        second = await asyncio.to_thread(start_daemon)
        texts = [result.text for result in await asyncio.gather(*meanwhile)]
        assert texts == [f"written: meanwhile-{number}" for number in range(5)]
        assert client.url == second.url
        assert client.hello is not None
        assert client.hello.resumed
    assert set(executed(first).values()) == {1}


async def test_a_crash_loses_and_repeats_no_call(start_daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A safely repeatable call is sent again; one that may have had its effect is reported as unknown."""
    first = start_daemon()
    monkeypatch.setenv("TOOLD_STATE_DIR", str(first.state))
    async with MCPWebSocketClient() as client:
        echo = asyncio.create_task(client.call("echo", {"text": "again", "delay_ms": 1500}, timeout=PATIENCE_S))
        effect = start(client, "interrupted", 60_000)
        await until(lambda: executed(first)["interrupted"])
        first.process.kill()
        first.process.wait()
        meanwhile = start(client, "after")
        await asyncio.to_thread(start_daemon)
        assert (await echo).text == "again"
        assert (await meanwhile).text == "written: after"
        with pytest.raises(OutcomeUnknownError) as unknown:
            await effect
        assert unknown.value.executed == "maybe"
    assert executed(first) == {"interrupted": 1, "after": 1}


async def test_an_unknown_session_gets_no_call_that_may_have_run(
    start_daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the state directory is lost, calls in flight fail, and the client continues with a new session."""
    first = start_daemon()
    monkeypatch.setenv("TOOLD_STATE_DIR", str(first.state))
    async with MCPWebSocketClient() as client:
        effect = start(client, "lost", 60_000)
        await until(lambda: executed(first)["lost"])
        first.process.kill()
        first.process.wait()
        for file in first.state.glob("*.db*"):
            file.unlink()
        await asyncio.to_thread(start_daemon)
        with pytest.raises(ConnectionLostError, match="no longer knows the session") as lost:
            await effect
        assert lost.value.executed == "maybe"
        assert (await client.call("echo", {"text": "here"})).text == "here"
    assert executed(first)["lost"] == 1


async def test_a_plain_client_reconnects(start_daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a session to resume its call in flight fails, and its next call reaches the next daemon."""
    first = start_daemon()
    monkeypatch.setenv("TOOLD_STATE_DIR", str(first.state))
    async with MCPWebSocketClient(features=()) as client:
        effect = start(client, "plain", 60_000)
        await until(lambda: executed(first)["plain"])
        first.process.kill()
        first.process.wait()
        with pytest.raises(ConnectionLostError) as lost:
            await effect
        assert lost.value.executed == "maybe"
        waiting = asyncio.create_task(client.call_tool("echo", {"text": "next"}))
        await asyncio.to_thread(start_daemon)
        assert await waiting == (True, [{"type": "text", "text": "next"}], None)
    assert executed(first)["plain"] == 1
