"""Connecting and reconnecting: when, how often, and when it stops."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import TYPE_CHECKING

import psutil
import pytest
from toold.client import (
    ConnectionFailedError,
    ConnectionLostError,
    MCPWebSocketClient,
    client_link,
    client_session,
    reconnect_policy,
)
from toold.client.client_connection import ClientConnection

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon

REFUSED = {"code": "UNAUTHORIZED", "message": "wrong token", "executed": "no", "retryable": False}
STALE = {
    "code": "PROTOCOL_ERROR",
    "message": "resume.n: too late",
    "executed": "no",
    "retryable": False,
    "details": {"n": 9},
}
FULL = {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}


@pytest.mark.parametrize("code", [1001, 1006, 1009, 1011, 1012])
async def test_a_client_reconnects_by_itself(daemon: ScriptedDaemon, peer: Peer, code: int) -> None:
    """After a restart, a lost connection or a missing pong."""
    if code == 1006:
        peer.cut()
    else:
        await peer.socket.close(code)
    next_peer = await daemon.accept()
    assert next_peer.hello["session_id"] == peer.hello["session_id"]


async def test_reconnecting_continues_until_the_daemon_is_back(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has each reason once."""
    port = daemon.port
    await daemon.stop()
    calling = asyncio.create_task(client.call_tool("echo"))
    while link_of(client)._step < 5:
        await asyncio.sleep(0.001)
    assert (
        sum("connection refused" in record.message for record in caplog.records if record.levelno > logging.DEBUG) == 1
    )
    await daemon.start(port=port)
    next_peer = await daemon.accept()
    await next_peer.answer(await next_peer.expect("call_tool"), "at last")
    success, outputs, _ = await calling
    assert (success, outputs[0]["text"]) == (True, "at last")


async def test_a_working_connection_resets_the_delays(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that ends right after the hello counts as a failed attempt. Each delay has a new draw."""
    steps: list[int] = []
    draws: set[float] = set()

    def note(step: int, draw: float) -> float:
        steps.append(step)
        draws.add(draw)
        return 0.0

    monkeypatch.setattr(client_link, "reconnect_delay_s", note)
    peer.cut()
    for _ in range(3):
        peer = await daemon.accept()
        peer.cut()
    peer = await daemon.accept()
    pinging = asyncio.create_task(client.ping())
    await peer.send("pong", request_id=(await peer.expect("ping"))["request_id"])
    await pinging
    peer.cut()
    await daemon.accept()
    assert steps == [0, 1, 2, 3, 0]
    assert len(draws) == len(steps)


@pytest.mark.parametrize("refusal", ["close", "hello"])
async def test_a_full_daemon_is_retried_after_some_seconds(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch, refusal: str
) -> None:
    """1008, and a temporary rejection of the hello, skip the short delays."""
    steps: list[int] = []

    def note(step: int, draw: float) -> float:
        steps.append(step)
        return 0.0

    monkeypatch.setattr(client_link, "reconnect_delay_s", note)
    good = daemon.ack
    if refusal == "close":
        await peer.socket.close(1008, "full")
    else:
        daemon.ack = {"ok": False, "error": FULL}
        peer.cut()
        await daemon.accept()
        daemon.ack = good
    await daemon.accept()
    assert steps[-1] >= reconnect_policy.LATER_STEP


async def test_a_disconnect_stops_reconnecting(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """No further attempt is made, whether the client was connected or reconnecting."""
    assert await client.connect()
    peer = await daemon.accept()
    await client.disconnect()
    assert await client.connect()
    peer = await daemon.accept()
    daemon.ack = {"ok": False, "error": FULL}
    peer.cut()
    await daemon.accept()
    await client.disconnect()
    assert link_of(client).idle
    assert not client.connected


async def test_a_disconnect_fails_waiting_calls(daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer) -> None:
    """Calls that waited for a connection fail as not sent."""
    daemon.ack = {"ok": False, "error": FULL}
    peer.cut()
    await daemon.accept()
    calls = [asyncio.create_task(client.call("echo")) for _ in range(2)]
    await asyncio.sleep(0)
    await client.disconnect()
    for ended in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(ended, ConnectionLostError)
        assert ended.executed == "no"
        assert "disconnected" in str(ended)


async def test_a_permanent_rejection_stops_reconnecting(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """For example, of a token that is no longer valid; each waiter gets a separate exception."""
    in_flight = asyncio.create_task(client.call("pay"))
    await resumable.expect("call_tool")
    daemon.ack = {"ok": False, "error": REFUSED}
    resumable.cut()
    await wait_for_the_end(client)
    waiting = [asyncio.create_task(client.call("echo")) for _ in range(2)]
    sent, *unsent = await asyncio.gather(in_flight, *waiting, return_exceptions=True)
    assert isinstance(sent, ConnectionLostError)
    assert sent.executed == "maybe"
    assert "wrong token" in str(sent)
    assert "may have run" in str(sent)
    assert all(isinstance(item, ConnectionFailedError) and "wrong token" in str(item) for item in unsent)
    assert unsent[0] is not unsent[1]
    assert link_of(client).idle


async def test_the_next_call_connects_again(daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer) -> None:
    """After a permanent rejection a call makes one attempt, which may find a daemon that accepts the token."""
    good, daemon.ack = daemon.ack, {"ok": False, "error": REFUSED}
    await peer.socket.close(4003, "token revoked")
    await wait_for_the_end(client)
    assert (await client.call_tool("echo"))[0] is False
    daemon.ack = good
    await daemon.accept()
    calling = asyncio.create_task(client.call_tool("echo"))
    next_peer = await daemon.accept()
    await next_peer.answer(await next_peer.expect("call_tool"))
    assert (await calling)[0] is True


async def test_a_session_resumed_elsewhere_is_not_taken_back(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """After 4004 the client does not reconnect by itself; connect() starts another session."""
    await resumable.socket.close(4004, "superseded")
    await wait_for_the_end(client)
    success, _, error = await client.call_tool("echo")
    assert not success
    assert error is not None
    assert "elsewhere" in error
    assert await client.ensure_connected() is False
    assert daemon.connections == 1
    assert await client.connect() is True
    assert "resume" not in (await daemon.accept()).hello


async def test_a_refusal_as_stale_ends_the_session_for_this_client(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """A later connection has the session, so the client does not resume it again, not even for a call."""
    calling = asyncio.create_task(client.call("pay"))
    await resumable.expect("call_tool")
    good, daemon.ack = daemon.ack, {"ok": False, "error": STALE}
    resumable.cut()
    await daemon.accept()
    with pytest.raises(ConnectionLostError, match="too late") as lost:
        await calling
    assert lost.value.executed == "maybe"
    daemon.ack = good
    success, _, error = await client.call_tool("echo")
    assert (success, daemon.connections) == (False, 2)
    assert "elsewhere" in (error or "")
    assert await client.connect() is True
    assert "resume" not in (await daemon.accept()).hello


async def test_connect_skips_the_delay(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``connect`` attempts at once, and no second connection is made."""
    monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 1000.0)
    peer.cut()
    await wait_for_the_end(client)
    assert await client.ensure_connected()
    await daemon.accept()
    pause = link_of(client)._reconnecting
    assert pause is not None
    await asyncio.wait({pause})
    assert daemon.connections == 2


async def test_a_failed_connect_does_not_stop_reconnecting(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """It returns False."""
    good, daemon.ack = daemon.ack, {"ok": False, "error": FULL}
    peer.cut()
    await wait_for_the_end(client)
    assert await client.connect(max_retries=1) is False
    daemon.ack = good
    while not client.connected:
        await daemon.accept()
        await asyncio.sleep(0.001)


async def test_a_connection_that_is_closing_is_replaced_and_its_calls_end(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """A daemon that sends a close and keeps the socket open does not block connect()."""
    calling = asyncio.create_task(client.call("pay"))
    await peer.expect("call_tool")
    peer.socket.protocol.send_close(1012)
    peer.socket.transport.write(b"".join(peer.socket.protocol.data_to_send()))
    peer.socket.transport.pause_reading()  # so that the socket stays open
    while client.connected:
        await asyncio.sleep(0.001)
    assert await client.connect()
    with pytest.raises(ConnectionLostError):
        await calling
    next_peer = await daemon.accept()
    peer.cut()
    await peer.socket.wait_closed()
    calling = asyncio.create_task(client.call("pay"))  # the end of the old connection does not affect the new one
    await next_peer.answer(await next_peer.expect("call_tool"))
    await calling
    assert daemon.connections == 2


async def test_a_permanent_end_fails_waiting_calls(client: MCPWebSocketClient, resumable: Peer) -> None:
    """They fail, because no further connection will be made."""
    await resumable.send("going_away", deadline_ms=10_000)
    async with asyncio.timeout(20):
        while link_of(client).accepts_calls:
            await asyncio.sleep(0.001)
    waiting = asyncio.create_task(client.call("echo"))
    await asyncio.sleep(0)
    await resumable.socket.close(4003, "token revoked")
    with pytest.raises(ConnectionFailedError, match="token revoked") as failed:
        await waiting
    assert not failed.value.retryable


async def test_nothing_leaks_over_many_reconnects(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 200 reconnects, each during a call, the number of tasks, sockets and connections is the same."""
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_AFTER_S", 0.0)
    daemon.key = "key"
    assert await client.connect()
    peer = await daemon.accept()

    async def call_over_a_break(peer: Peer) -> Peer:
        calling = asyncio.create_task(client.call("echo"))
        call = await peer.expect("call_tool")
        given_up = asyncio.create_task(client.call("echo", request_id=f"{call['request_id']}-given-up"))
        await peer.expect("call_tool")
        peer.cut()
        given_up.cancel()
        next_peer = await daemon.accept()
        frames = {frame["op"]: frame for frame in [await next_peer.frames.get() for _ in range(2)]}
        assert set(frames) == {"cancel", "call_status"}
        await next_peer.answer({"request_id": frames["cancel"]["request_id"]})
        await next_peer.send("call_status_res", calls={call["request_id"]: "done"})
        await next_peer.answer(call)
        await calling
        assert set((await next_peer.expect("acknowledge"))["request_ids"]) >= {call["request_id"]}
        return next_peer

    def held() -> tuple[int, int, int, int]:
        gc.collect()
        connections = sum(isinstance(thing, ClientConnection) for thing in gc.get_objects())
        mine = sum((task.get_name() or "").startswith("toold") for task in asyncio.all_tasks())
        return mine, psutil.Process().num_fds(), connections, len(client._session._cancelling)

    for _ in range(3):
        peer = await call_over_a_break(peer)
    before = held()
    for _ in range(200):
        peer = await call_over_a_break(peer)
    assert held() == before
    assert len(client._session.answers) == 0


def link_of(client: MCPWebSocketClient) -> client_link.ClientLink:
    return client._link


async def wait_for_the_end(client: MCPWebSocketClient) -> None:
    """Until the client has noticed that its connection ended."""
    async with asyncio.timeout(20):
        while link_of(client)._attached:
            await asyncio.sleep(0.001)
