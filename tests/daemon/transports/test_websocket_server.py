"""The WebSocket server: upgrades, the hello, and the end of connections."""

import asyncio
import json
import struct
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import pytest
from toold.client import MCPWebSocketClient, reconnect_policy, socket_opening
from toold.version import __version__
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.frames import Frame, Opcode


async def echo(arguments: Any, context: Any) -> Any:
    """Returns its argument."""
    return {"said": arguments.model_extra}


@pytest.fixture
async def daemon(serve: Any, make_tool: Any) -> Any:
    return await serve(make_tool("echo", echo))


async def closed(peer: Any) -> tuple[list[str], int | None, str]:
    """Reads to the end; returns the remaining ops, the close code and its reason."""
    ops: list[str] = []
    try:
        while True:
            ops.append((await peer.receive())["op"])
    except ConnectionClosed:
        return ops, peer.socket.close_code, peer.socket.close_reason or ""


async def hello(daemon: Any, **fields: Any) -> dict[str, Any]:
    """Returns the ack of a hello."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", **fields}))
        ack: dict[str, Any] = json.loads(await socket.recv())
        return ack


async def test_the_ack(daemon: Any) -> None:
    """Protocol, server, common features, instructions from the current tools, and the configured limits."""
    ack = await hello(daemon, session_id="my-label", features=["ack", "stream", "flying"])
    assert (ack["ok"], ack["session_id"], ack["protocol"], ack["resumed"]) == (True, "my-label", 1, False)
    assert "session_id_generated" not in ack
    assert (ack["server"]["name"], ack["server"]["version"]) == ("toold", __version__)
    assert sorted(ack["features"]) == ["ack", "stream"]
    assert "echo" in ack["instructions"]
    assert "SIMULATED" in ack["instructions"]
    bounds = daemon.router.limits
    limits = ack["limits"]
    assert limits["max_frame_bytes"] == bounds.max_frame_bytes
    assert limits["max_inflight"] == bounds.max_accepted_per_session
    assert (limits["default_timeout_s"], limits["max_timeout_s"]) == (30, 1800)
    assert limits["ping_interval_s"] == 20


async def test_a_session_keeps_its_limit(daemon: Any) -> None:
    """A reloaded limit applies to new sessions: the ack of a resume has the session's own."""
    opened = await hello(daemon, features=["resume"])
    daemon.router.limits = replace(daemon.router.limits, max_accepted_per_session=3)
    back = await hello(daemon, features=["resume"], resume={"key": opened["resume_key"]})
    assert back["resumed"]
    assert back["limits"]["max_inflight"] == opened["limits"]["max_inflight"]
    assert (await hello(daemon))["limits"]["max_inflight"] == 3


async def test_the_ack_describes_the_tools(daemon: Any) -> None:
    """The toolset, requested or not, the revision of its listing, and instructions for a model."""
    ack, lean = await hello(daemon), await hello(daemon, toolset="lean")
    assert (ack["toolset"], lean["toolset"]) == ("standard", "lean")
    assert (ack["tools_rev"], lean["tools_rev"]) == tuple(
        daemon.router.catalog.view(name).rev for name in ("standard", "lean")
    )
    assert "toolset 'standard': echo." in ack["instructions"]
    assert "toolset 'lean': no tools." in lean["instructions"]


async def test_an_unknown_toolset_is_refused_with_the_valid_names(daemon: Any) -> None:
    """The connection closes with 4003."""
    ack = await hello(daemon, toolset="laen")
    assert not ack["ok"]
    assert "did you mean 'lean'? You may use code, full, hybrid, lean, standard, or omit" in ack["error"]["message"]


async def test_a_resumed_session_keeps_its_toolset(daemon: Any) -> None:
    """It ignores the toolset of the hello, and the ack says so."""
    opened = await hello(daemon, features=["resume"], toolset="lean")
    resume = {"key": opened["resume_key"]}
    back = await hello(daemon, features=["resume"], resume=resume)
    assert (back["resumed"], back["toolset"]) == (True, "lean")
    other = await hello(daemon, features=["resume"], resume=resume, toolset="full", session_id="my-label")
    assert (other["resumed"], other["toolset"]) == (True, "lean")
    assert other["notice"] == "toolset: a resumed session keeps its toolset 'lean'; use a new session for another"


async def test_an_unreadable_workspace_has_a_notice(daemon: Any) -> None:
    """The hello is accepted nevertheless: not every tool reads files."""
    (root,) = daemon.router.files.roots
    ack = await hello(daemon, session_id="my-label", client={"workspace": str(root.parent / "elsewhere")})
    assert ack["ok"]
    assert ack["notice"].startswith("client.workspace: relative paths start there, but it is outside the directories ")
    assert "notice" not in await hello(daemon, session_id="my-label", client={"workspace": str(root)})
    assert "notice" not in await hello(daemon, session_id="my-label", client={"name": "x"})


def without_pongs(socket: ClientConnection) -> list[Frame]:
    """Stops this client from answering pings. Returns the pongs that it withholds."""
    kept_back: list[Frame] = []
    send = socket.protocol.send_frame

    def send_but_pongs(frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            kept_back.append(frame)
        else:
            send(frame)

    socket.protocol.send_frame = send_but_pongs  # type: ignore[method-assign]
    return kept_back


async def test_an_unresponsive_peer_is_closed_with_1011(serve: Any, make_tool: Any, join: Any) -> None:
    """It sends nothing and answers no ping; its connection becomes available."""
    daemon = await serve(make_tool("echo", echo), TOOLD_PING_INTERVAL_S="0.1", TOOLD_PING_TIMEOUT_S="0.1")
    peer = await join(daemon)
    without_pongs(peer.socket)
    assert await asyncio.wait_for(closed(peer), 20) == ([], 1011, "no data and no pong for 0.2 s")
    while daemon.websocket.connections:
        await asyncio.sleep(0.001)


async def test_late_pongs_are_tolerated_while_data_arrives(serve: Any, make_tool: Any, join: Any) -> None:
    """On a slow line pongs follow a large answer: any other data shows that the peer is alive."""
    daemon = await serve(make_tool("echo", echo), TOOLD_PING_INTERVAL_S="0.5", TOOLD_PING_TIMEOUT_S="0.5")
    peer = await join(daemon)
    late = without_pongs(peer.socket)
    while len(late) < 4:
        await peer.send("ping")
        assert (await peer.receive())["op"] == "pong"
        await asyncio.sleep(0.01)


async def test_the_epoch_changes_at_each_start(serve: Any, make_tool: Any) -> None:
    """Clients detect a restart by it."""
    first = await hello(await serve(make_tool("echo", echo)))
    second = await hello(await serve(make_tool("echo", echo), TOOLD_STATE_DIR="another"))
    assert first["server"]["epoch"] != second["server"]["epoch"]


async def test_two_connections_with_one_label_are_two_sessions(daemon: Any, join: Any) -> None:
    """Closing one does not affect the other, and their calls are separate."""
    first, second = await join(daemon, session_id="same"), await join(daemon, session_id="same")
    await first.send("call_tool", request_id=1, name="echo", arguments={"by": "one"})
    await second.send("call_tool", request_id=1, name="echo", arguments={"by": "two"})
    assert (await first.receive())["structured"] == {"said": {"by": "one"}}
    assert (await second.receive())["structured"] == {"said": {"by": "two"}}
    await first.socket.close()
    await second.send("ping", request_id="p")
    assert (await second.receive())["op"] == "pong"


async def test_connections_above_the_limit_are_closed_with_1008(serve: Any, join: Any, make_tool: Any) -> None:
    """The reason states the limit; other connections stay open, and a closed one frees its place."""
    daemon = await serve(make_tool("echo", echo), TOOLD_MAX_CONNECTIONS="2")
    first, second = await join(daemon), await join(daemon)
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as third:
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(third.recv(), 20)
        assert third.close_code == 1008
        assert "2 connections" in (third.close_reason or "")
    await first.send("ping")
    assert (await first.receive())["op"] == "pong"
    await second.socket.close()
    async with asyncio.timeout(20):
        while daemon.websocket.connections > 1:
            await asyncio.sleep(0.001)
    assert (await hello(daemon))["ok"]


async def test_connections_counts_those_with_a_hello(daemon: Any, join: Any) -> None:
    """A connection without a hello is not counted, and has a separate slot."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None):
        await join(daemon)
        assert daemon.websocket.connections == 1
        assert "1/5000 +1" in repr(daemon.websocket)


async def test_allowed_origins_may_connect(serve: Any, make_tool: Any) -> None:
    """Exactly those; a client without an origin is not a browser and is admitted."""
    daemon = await serve(make_tool("echo", echo), TOOLD_ALLOWED_ORIGINS="https://tools.example")
    url = f"ws://127.0.0.1:{daemon.websocket.port}/"
    async with connect(url, additional_headers={"Origin": "https://tools.example"}) as socket:
        await socket.send('{"op":"hello"}')
        assert json.loads(await socket.recv())["ok"]
    for origin in ("https://tools.example.evil", "http://tools.example", "null"):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, additional_headers={"Origin": origin}).__aenter__()
        assert refused.value.response.status_code == 403
    assert (await hello(daemon))["ok"]


async def test_going_away_is_sent_to_clients_with_the_feature(daemon: Any, join: Any) -> None:
    """With the remaining time."""
    notified, plain = await join(daemon, features=["going_away"]), await join(daemon)
    await daemon.websocket.announce_shutdown(1500.0)
    assert await notified.receive() == {"op": "going_away", "deadline_ms": 1500.0}
    await plain.send("ping")
    assert (await plain.receive())["op"] == "pong"


async def test_close_sends_1012_to_all(daemon: Any, join: Any) -> None:
    """With a reason; then no client is connected and the port is closed."""
    peers = [await join(daemon) for _ in range(3)]
    port = daemon.websocket.port
    await daemon.websocket.close()
    for peer in peers:
        assert await closed(peer) == ([], 1012, "the daemon is shutting down; reconnect later")
    assert daemon.websocket.connections == 0
    with pytest.raises(OSError, match="Connect call failed"):
        await connect(f"ws://127.0.0.1:{port}/").__aenter__()


async def test_a_draining_daemon_refuses_connections(daemon: Any, join: Any) -> None:
    """New connections get 503; calls on open ones are rejected."""
    peer = await join(daemon)
    await daemon.router.close("The daemon is going down.", 0.0)
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://127.0.0.1:{daemon.websocket.port}/").__aenter__()
    assert refused.value.response.status_code == 503
    await peer.send("call_tool", request_id=1, name="echo")
    assert (await peer.receive())["error"]["code"] == "SERVICE_UNAVAILABLE"


async def test_no_hello_in_time_is_closed_with_4002(serve: Any, make_tool: Any) -> None:
    """The ack states the time limit, before the close."""
    daemon = await serve(make_tool("echo", echo), TOOLD_HELLO_TIMEOUT_S="0.1")
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        ack = json.loads(await asyncio.wait_for(socket.recv(), 20))
        assert (ack["ok"], ack["error"]["code"]) == (False, "PROTOCOL_ERROR")
        assert "0.1 s" in ack["error"]["message"]
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 20)
        assert socket.close_code == 4002


async def silent(daemon: Any, count: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Opens TCP connections that send nothing."""
    return [await asyncio.open_connection("127.0.0.1", daemon.websocket.port) for _ in range(count)]


async def test_silent_peers_keep_no_client_out(serve: Any, make_tool: Any, join: Any) -> None:
    """However many connect, a client that says hello gets a place, and the oldest of them lose theirs."""
    daemon = await serve(make_tool("echo", echo), TOOLD_MAX_UNAUTHENTICATED="8", TOOLD_MAX_CONNECTIONS="2")
    peers = await silent(daemon, 40)
    client = await join(daemon)
    peers += await silent(daemon, 40)
    assert (await hello(daemon))["ok"]
    await client.send("ping")
    assert (await client.receive())["op"] == "pong"
    for reader, writer in peers[:-8]:
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
    for _, writer in peers[-8:]:
        writer.close()


@pytest.mark.parametrize("fragments", [1, 2])
async def test_the_first_message_is_small(daemon: Any, fragments: int) -> None:
    """One that announces more than 64 KiB is closed with 1009 before its content arrives."""
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        if fragments > 1:
            socket.transport.write(masked(0x01, 60_000) + bytes(60_000))
        socket.transport.write(masked(0x80 if fragments > 1 else 0x81, 64 * 1024 + 1 - 60_000 * (fragments - 1)))
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 20)
        assert socket.close_code == 1009


def masked(first: int, length: int) -> bytes:
    """The head of a client's frame (RFC 6455, 5.2), with a mask of zeros."""
    return bytes([first]) + struct.pack("!BQ", 0xFF, length) + bytes(4)


async def test_a_large_call_may_follow_the_hello_at_once(daemon: Any) -> None:
    """A client need not wait for the ack, and the limit of the hello does not apply to what follows it."""
    text = "x" * 300_000
    call = json.dumps({"op": "call_tool", "request_id": 1, "name": "echo", "arguments": {"text": text}}).encode()
    greeting = b'{"op":"hello"}'
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        socket.transport.write(masked(0x81, len(greeting)) + greeting + masked(0x81, len(call)) + call)
        frames = [json.loads(await asyncio.wait_for(socket.recv(), 20)) for _ in range(2)]
        assert [frame["op"] for frame in frames] == ["hello_ack", "call_tool_res"]
        assert frames[1]["structured"] == {"said": {"text": text}}


async def test_a_late_resume_does_not_take_the_session(daemon: Any, join: Any) -> None:
    """A lower or equal number is refused with 4005 and the newest number; the newer connection is not affected. A hello
    without a number, of an older client, takes over as before.
    """
    key = (await hello(daemon, features=["resume"]))["resume_key"]
    newer = await join(daemon, features=["resume"], resume={"key": key, "n": 5})
    for number in (5, 4):
        late = await hello(daemon, features=["resume"], resume={"key": key, "n": number})
        assert (late["ok"], late["error"]["code"], late["error"]["details"]) == (False, "PROTOCOL_ERROR", {"n": 5})
    async with connect(f"ws://127.0.0.1:{daemon.websocket.port}/", compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", "features": ["resume"], "resume": {"key": key, "n": 1}}))
        await socket.recv()
        await socket.wait_closed()
        assert socket.close_code == 4005
    await newer.send("call_tool", request_id=1, name="echo", arguments={"x": 1})
    assert (await newer.until_answered(1))[-1]["error"] is None
    old_client = await join(daemon, features=["resume"], resume={"key": key})
    assert (await closed(newer))[1] == 4004
    newest = await join(daemon, features=["resume"], resume={"key": key, "n": 6})
    assert (await closed(old_client))[1] == 4004
    await newest.send("call_tool", request_id=2, name="echo", arguments={})
    assert (await newest.until_answered(2))[-1]["error"] is None


class LateLine:
    """A TCP proxy that holds back what the second client sends after its upgrade, until it is released."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._connections = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self.released = asyncio.Event()
        self.delivered = asyncio.Event()
        """The late hello was answered or closed by the daemon."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.lines: list[asyncio.StreamWriter] = []
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._pass_on(reader, writer))
        self._tasks.add(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        late = self._connections == 2
        from_daemon, to_daemon = await asyncio.open_connection("127.0.0.1", self._port)
        self.lines.append(writer)
        answering = asyncio.create_task(self._copy(from_daemon, writer))
        try:
            to_daemon.write(await reader.readuntil(b"\r\n\r\n"))
            if late:
                hello = await reader.read(2**16)
                await self.released.wait()
                to_daemon.write(hello)
                await answering
                self.delivered.set()
            else:
                await self._copy(reader, to_daemon)
        finally:
            for each in (to_daemon, writer):
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()
            answering.cancel()
            await asyncio.wait([answering])

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(2**16):
                if not writer.is_closing():
                    writer.write(piece)


async def test_a_late_hello_does_not_cost_a_client_its_session(daemon: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attempt that the client gave up arrives after the next one: the client keeps its session and its calls."""
    async with LateLine(daemon.websocket.port) as line:
        client = MCPWebSocketClient(port=line.port, token="any")
        assert await client.connect()
        monkeypatch.setattr(socket_opening, "OPEN_TIMEOUT_S", 0.3)  # for the attempt that hangs
        monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 0.01)
        line.lines[0].transport.abort()
        result = await client.call("echo", {"x": 1}, timeout=20)  # over the third connection, or a later one
        monkeypatch.undo()
        held = client._link.connection
        line.released.set()
        async with asyncio.timeout(20):
            await line.delivered.wait()
        repeat = await client.call("echo", {"x": 1}, timeout=20)
        assert (repeat.structured, client._link.connection) == (result.structured, held)
        await client.disconnect()


async def test_large_frames_take_turns(serve: Any, make_tool: Any, join: Any) -> None:
    """While one principal's frames fill its limit, a further large one is not received; small ones are."""
    daemon = await serve(
        make_tool("echo", echo),
        TOOLD_MAX_FRAME_BYTES="4000000",
        TOOLD_MAX_REQUEST_BYTES_PER_PRINCIPAL="8000000",
        TOOLD_PING_TIMEOUT_S="600",
    )
    text = "x" * 3_000_000
    call = json.dumps({"op": "call_tool", "request_id": 1, "name": "echo", "arguments": {"text": text}}).encode()
    peers = [await join(daemon) for _ in range(3)]
    for number, peer in enumerate(peers):
        peer.socket.transport.write(masked(0x81, len(call)) + call[: 2_000_000 if number < 2 else len(call)])
        if number < 2:
            await until_repr(daemon, f"turns={number + 1} waiting=0")
    await until_repr(daemon, "turns=2 waiting=1")
    other = await join(daemon)
    await other.send("ping")
    assert (await other.receive())["op"] == "pong"
    peers[0].socket.transport.write(call[2_000_000:])
    for peer in (peers[0], peers[2]):
        assert (await peer.receive())["structured"]["said"]["text"] == text
    peers[1].socket.transport.abort()
    await until_repr(daemon, "turns=0 waiting=0")


async def until_repr(daemon: Any, state: str) -> None:
    """Waits until the turns for large frames are in this state."""
    async with asyncio.timeout(20):
        while state not in repr(daemon.websocket._large_frames):
            await asyncio.sleep(0.001)
