"""The WebSocket server: upgrades, the hello, and the end of connections."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from toold.version import __version__
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from .websocket_peers import closed, echo, hello, masked


@pytest.fixture
async def daemon(serve: Any, make_tool: Any) -> Any:
    return await serve(make_tool("echo", echo))


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


def counted_pongs(socket: ClientConnection) -> list[Frame]:
    """The pongs that a client sends from now on."""
    pongs: list[Frame] = []
    send_frame = socket.protocol.send_frame

    def count(frame: Frame) -> None:
        if frame.opcode is Opcode.PONG:
            pongs.append(frame)
        send_frame(frame)

    socket.protocol.send_frame = count  # type: ignore[method-assign]
    return pongs


async def test_an_unresponsive_peer_is_closed_with_1011(serve: Any, make_tool: Any, join: Any) -> None:
    """It sends nothing and answers no ping; its connection becomes available."""
    daemon = await serve(make_tool("echo", echo), TOOLD_PING_INTERVAL_S="0.5", TOOLD_PING_TIMEOUT_S="0.5")
    peer = await join(daemon)
    without_pongs(peer.socket)
    assert await asyncio.wait_for(closed(peer), 20) == ([], 1011, "no data and no pong for 1 s")
    while daemon.websocket.connections:
        await asyncio.sleep(0.001)


async def test_an_idle_connection_is_pinged(serve: Any, make_tool: Any, join: Any) -> None:
    """It sends nothing but pongs, and stays open for longer than an unresponsive one does."""
    daemon = await serve(make_tool("echo", echo), TOOLD_PING_INTERVAL_S="0.5", TOOLD_PING_TIMEOUT_S="0.5")
    peer = await join(daemon)
    pongs = counted_pongs(peer.socket)
    while len(pongs) < 4:
        assert daemon.websocket.connections == 1
        await asyncio.sleep(0.01)


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
