"""Sending requests: waiting for a connection, timeouts, and daemons that go away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from toold.client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient, request_exchange
from toold.protocol.error_codes import CallCancelledError, CallTimeoutError, ServiceUnavailableError

from .echo_calls import start

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon

STOPPING = {"code": "SERVICE_UNAVAILABLE", "message": "it goes down", "executed": "no", "retryable": True}
FULL = {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}


async def lose_the_daemon(daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer) -> None:
    """Break the connection, and refuse further ones until ``ack`` is valid again."""
    daemon.ack = {"ok": False, "error": FULL}
    peer.cut()
    async with asyncio.timeout(20):
        while client.connected:
            await asyncio.sleep(0.001)


async def test_calls_wait_for_the_next_connection(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """Calls that start after a lost connection are sent on the next one."""
    await peer.socket.close(1012)
    calls = [start(client, text) for text in "abc"]
    next_peer = await daemon.accept()
    for _ in calls:
        call = await next_peer.expect("call_tool")
        await next_peer.answer(call, call["arguments"]["text"])
    assert [result.text for result in await asyncio.gather(*calls)] == ["a", "b", "c"]
    assert daemon.connections == 2


async def test_a_delayed_call_is_sent_with_its_remaining_time(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """The timeout counts from the call, not from the connection."""
    good = daemon.ack
    await lose_the_daemon(daemon, client, peer)
    calling = start(client, timeout=30)
    await asyncio.sleep(0)  # the call begins
    await asyncio.sleep(0.02)
    daemon.ack = good
    next_peer = await greeted(daemon, client)
    call = await next_peer.expect("call_tool")
    assert call["timeout_ms"] <= 29_990
    await next_peer.answer(call)
    await calling


async def test_a_call_waits_for_a_connection_until_its_timeout(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """The error has the reason, and the call was not sent."""
    await lose_the_daemon(daemon, client, peer)
    await daemon.accept()
    with pytest.raises(ConnectionFailedError, match=r"in time.*full") as failed:
        await client.call("echo", timeout=0.05)
    assert failed.value.retryable


async def test_a_call_without_a_timeout_waits_for_a_connection_for_30_s(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After 30 s the call fails as not sent; the same applies to other requests."""
    monkeypatch.setattr(request_exchange, "DEFAULT_TIMEOUT_S", 0.02)
    await lose_the_daemon(daemon, client, peer)
    with pytest.raises(ConnectionFailedError, match="in time"):
        await client.call("echo")
    with pytest.raises(ConnectionFailedError, match="in time"):
        await client.ping()


async def test_a_call_that_times_out_while_disconnected_is_cancelled_after_the_reconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timeout and grace include the time without a connection."""
    monkeypatch.setattr(request_exchange, "GRACE_S", 0.0)
    good = daemon.ack
    calling = start(client, timeout=0.05, request_id="slow")
    await resumable.expect("call_tool")
    await lose_the_daemon(daemon, client, resumable)
    with pytest.raises(CallTimeoutError, match="may have run") as late:
        await calling
    assert late.value.executed == "maybe"
    daemon.ack = good
    next_peer = await greeted(daemon, client)
    assert (await next_peer.expect("cancel"))["request_id"] == "slow"


async def test_a_call_without_a_timeout_ends_after_the_daemons_limit(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call ends even if the daemon never returns."""
    monkeypatch.setattr(request_exchange, "GRACE_S", 0.0)
    limits: dict[str, float] = dict.fromkeys(("max_inflight", "ping_interval_s", "default_timeout_s"), 1)
    limits |= {"max_timeout_s": 0.05, "max_frame_bytes": 10_000, "progress_window_s": 1, "result_ttl_s": 1}
    assert daemon.ack is not None
    daemon.ack |= {"limits": limits}
    daemon.key = "key"
    await client.connect()
    with pytest.raises(CallTimeoutError, match=r"within 0\.05 s"):
        await client.call("echo")


async def test_without_auto_reconnect_a_lost_connection_fails_the_call(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """And a call without a connection fails at once."""
    calling = start(client, auto_reconnect=False)
    await resumable.expect("call_tool")
    await lose_the_daemon(daemon, client, resumable)
    with pytest.raises(ConnectionLostError) as lost:
        await calling
    assert lost.value.executed == "maybe"
    with pytest.raises(ConnectionLostError) as unsent:
        await client.call("echo", auto_reconnect=False)
    assert unsent.value.executed == "no"


async def test_a_plain_clients_call_in_flight_is_not_resent(daemon: ScriptedDaemon) -> None:
    """Without a session it is unknown whether it ran, so the caller decides."""
    async with MCPWebSocketClient(port=daemon.port, features=()) as client:
        peer = await daemon.accept()
        calling = asyncio.create_task(client.call_tool("pay", {}))
        await peer.expect("call_tool")
        await peer.socket.close(1012)
        success, _, error = await calling
        assert not success
        assert error is not None
        assert "may have run" in error
        next_peer = await daemon.accept()
        calling = asyncio.create_task(client.call_tool("echo", {}))
        call = await next_peer.expect("call_tool")
        assert call["name"] == "echo"
        await next_peer.answer(call)
        assert (await calling)[0] is True


async def test_other_requests_end_with_their_connection(client: MCPWebSocketClient, resumable: Peer) -> None:
    """They fail at once, because the caller can repeat them."""
    pinging = asyncio.create_task(client.ping())
    await resumable.expect("ping")
    resumable.cut()
    with pytest.raises(ConnectionLostError):
        await pinging


# --- a daemon that is going away -------------------------------------------------------------------------------------


async def test_new_calls_wait_while_the_daemon_is_going_away(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Running calls are answered by the old daemon; new ones go to the next."""
    running = start(client, "running")
    call = await resumable.expect("call_tool")
    await resumable.send("going_away", deadline_ms=10_000)
    await resumable.answer(call, "finished")
    assert (await running).text == "finished"
    waiting = start(client, "waiting")
    health = asyncio.create_task(client.health())
    await resumable.send("health_res", request_id=(await resumable.expect("health"))["request_id"], health={})
    await health
    await resumable.socket.close(1012)
    next_peer = await daemon.accept()
    await next_peer.expect("acknowledge")
    await next_peer.answer(await next_peer.expect("call_tool"), "next daemon")
    assert (await waiting).text == "next daemon"


async def test_unsent_calls_wait_for_the_next_daemon_without_a_session(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """They belong to no session yet."""
    await peer.send("going_away", deadline_ms=10_000)
    async with asyncio.timeout(20):
        while client._link.accepts_calls:
            await asyncio.sleep(0.001)
    waiting = start(client, "waiting")
    await asyncio.sleep(0)
    await peer.socket.close(1012)
    next_peer = await daemon.accept()
    await next_peer.answer(await next_peer.expect("call_tool"), "next daemon")
    assert (await waiting).text == "next daemon"


async def test_a_call_rejected_while_going_away_is_sent_to_the_next_daemon(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """It was rejected before it was accepted, so the caller does not see that."""
    calling = start(client, timeout=20)
    call = await resumable.expect("call_tool")
    await resumable.send("going_away", deadline_ms=10_000)
    await resumable.answer(call, outputs=[], error=STOPPING)
    await resumable.socket.close(1012)
    next_peer = await daemon.accept()
    assert (await next_peer.expect("acknowledge"))["request_ids"] == [call["request_id"]]
    repeat = await next_peer.expect("call_tool")
    assert repeat["request_id"] == call["request_id"]
    await next_peer.answer(repeat, "here")
    assert (await calling).text == "here"


@pytest.mark.parametrize(
    ("accepted", "changes"), [(True, {}), (False, {"executed": "maybe"}), (False, {"code": "OVER_CAPACITY"})]
)
async def test_an_accepted_call_is_not_sent_to_the_next_daemon(
    client: MCPWebSocketClient, resumable: Peer, accepted: bool, changes: dict[str, str]
) -> None:
    """Its answer is final."""
    calling = start(client)
    call = await resumable.expect("call_tool")
    if accepted:
        await resumable.send("call_tool_ack", request_id=call["request_id"], accepted=True, timeout_ms=1000)
    await resumable.send("going_away", deadline_ms=10_000)
    await resumable.answer(call, outputs=[], error=STOPPING | changes)
    with pytest.raises(Exception, match="it goes down"):
        await calling


async def test_a_rejection_by_a_running_daemon_is_the_answer(client: MCPWebSocketClient, resumable: Peer) -> None:
    """The caller decides when to repeat the call."""
    calling = start(client)
    await resumable.answer(await resumable.expect("call_tool"), outputs=[], error=STOPPING)
    with pytest.raises(ServiceUnavailableError):
        await calling


async def test_without_acks_a_rejection_is_passed_on(daemon: ScriptedDaemon) -> None:
    """The client cannot know whether the call was accepted."""
    assert daemon.ack is not None
    daemon.ack |= {"features": ["resume", "going_away"]}
    async with MCPWebSocketClient(port=daemon.port, features=("resume", "going_away")) as client:
        peer = await daemon.accept()
        calling = start(client)
        call = await peer.expect("call_tool")
        await peer.send("going_away", deadline_ms=10_000)
        await peer.answer(call, outputs=[], error=STOPPING)
        with pytest.raises(ServiceUnavailableError):
            await calling


async def test_without_auto_reconnect_a_call_is_sent_to_a_daemon_that_is_going_away(
    client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Its rejection is the answer."""
    await resumable.send("going_away", deadline_ms=10_000)
    await asyncio.sleep(0)
    calling = start(client, auto_reconnect=False)
    await resumable.answer(await resumable.expect("call_tool"), outputs=[], error=STOPPING)
    with pytest.raises(ServiceUnavailableError):
        await calling


# --- cancelling unsent calls -----------------------------------------------------------------------------------------


async def test_an_unsent_call_is_cancelled_at_once(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer
) -> None:
    """It had no effect, and is never sent."""
    good = daemon.ack
    await lose_the_daemon(daemon, client, peer)
    calling = start(client, request_id="unsent")
    await asyncio.sleep(0)
    assert await client.cancel("unsent") is True
    with pytest.raises(CallCancelledError) as cancelled:
        await calling
    assert cancelled.value.executed == "no"
    daemon.ack = good
    next_peer = await greeted(daemon, client)
    calling = start(client, request_id="next")
    assert (await next_peer.expect("call_tool"))["request_id"] == "next"
    await next_peer.answer({"request_id": "next"})
    await calling


async def test_cancel_of_another_clients_call_waits_for_the_connection(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """It is sent after the reconnect."""
    resumable.cut()
    while client.connected:
        await asyncio.sleep(0)
    cancelling = asyncio.create_task(client.cancel("stranger"))
    next_peer = await daemon.accept()
    await next_peer.expect("cancel")
    await next_peer.send("cancel_res", request_id="stranger", status="done")
    assert await cancelling is False


async def test_an_unanswered_cancel_times_out(
    client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call itself continues to wait."""
    monkeypatch.setattr(request_exchange, "REQUEST_TIMEOUT_S", 0.02)
    calling = start(client, request_id="stubborn")
    call = await resumable.expect("call_tool")
    with pytest.raises(CallTimeoutError, match="stubborn"):
        await client.cancel("stubborn")
    await resumable.answer(call, "anyway")
    assert (await calling).text == "anyway"


async def greeted(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> Peer:
    """The daemon's side of the connection that the client came back by; those that were refused are skipped."""
    async with asyncio.timeout(20):
        while not client.connected:
            await asyncio.sleep(0.001)
    peer = await daemon.accept()
    while not daemon.peers.empty():
        peer = await daemon.accept()
    return peer
