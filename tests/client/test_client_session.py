"""Sessions across connections: calls in flight, acknowledgements and cancels."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from toold.client import CallResult, ConnectionLostError, MCPWebSocketClient, TextChunk, client_session
from toold.protocol.error_codes import CallCancelledError, InvalidArgumentsError, ResultExpiredError
from toold.protocol.tool_call import Progress

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon

CANCELLED = {"code": "CANCELLED", "message": "cancelled", "executed": "maybe", "retryable": False}


def start(client: MCPWebSocketClient, request_id: str = "id", **options: Any) -> asyncio.Task[CallResult]:
    return asyncio.create_task(client.call("pay", {"to": "x"}, request_id=request_id, **options))


async def reconnected(daemon: ScriptedDaemon, peer: Peer) -> Peer:
    """Cut the connection; returns the daemon's side of the next one."""
    peer.cut()
    return await daemon.accept()


async def test_the_resume_key_is_sent_on_reconnect(daemon: ScriptedDaemon, resumable: Peer) -> None:
    """The first hello has none; each later one has a higher number."""
    next_peer = await reconnected(daemon, resumable)
    third = await reconnected(daemon, next_peer)
    assert "resume" not in resumable.hello
    assert {next_peer.hello["resume"]["key"], third.hello["resume"]["key"]} == {"first key"}
    assert 1 < next_peer.hello["resume"]["n"] < third.hello["resume"]["n"]


async def test_a_running_call_returns_across_connections(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Its status is queried, it is not resent, and its callbacks keep working."""
    progress: list[Progress] = []
    chunks: list[TextChunk] = []
    calling = start(client, on_progress=progress.append, on_chunk=chunks.append)
    call = await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.status(id="running")
    await next_peer.send("progress", request_id="id", seq=1, message="half")
    await next_peer.send("stream_chunk", request_id="id", seq=1, text="the rest", offset=7)
    await next_peer.answer(call, "paid")
    assert (await calling).text == "paid"
    assert (progress, chunks) == ([Progress("half")], ["the rest"])
    assert [chunk.offset for chunk in chunks] == [7]
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ["id"]


async def test_a_missed_answer_is_redelivered(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """It may arrive before the status; a duplicate is dropped."""
    calling = start(client)
    call = await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.expect("call_status")
    await next_peer.answer(call, "paid")
    await next_peer.answer(call, "paid twice")
    await next_peer.send("call_status_res", calls={"id": "done"})
    assert (await calling).text == "paid"
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ["id", "id"]


async def test_a_call_that_never_arrived_is_resent_with_its_id(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """The session does not know it, so it cannot run twice; it has its remaining time."""
    calling = start(client, timeout=30)
    call = await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.status(id="unknown")
    repeat = await next_peer.expect("call_tool")
    assert repeat.pop("timeout_ms") < call.pop("timeout_ms")
    assert repeat == call
    await next_peer.answer(repeat, "paid")
    assert (await calling).text == "paid"


async def test_each_call_is_handled_by_its_status(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """One status request: expired ones fail, unknown ones are resent, others are awaited."""
    calls = {name: start(client, name) for name in ("runs", "gone", "new")}
    for _ in calls:
        await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.status(runs="running", gone="expired", new="unknown")
    assert (await next_peer.expect("call_tool"))["request_id"] == "new"
    for name in ("runs", "new"):
        await next_peer.answer({"request_id": name}, name)
        assert (await calls[name]).text == name
    with pytest.raises(ResultExpiredError) as expired:
        await calls["gone"]
    assert expired.value.executed == "yes"


async def test_calls_without_a_status_are_resent(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a resumed session a repeat attaches or replays."""
    monkeypatch.setattr(client_session, "STATUS_TIMEOUT_S", 0.01)
    calling = start(client)
    call = await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.expect("call_status")
    await next_peer.answer(await next_peer.expect("call_tool"), "paid")
    assert (await calling).text == "paid"
    assert call["request_id"] == "id"


async def test_a_lost_connection_during_the_status_request_repeats_it(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """The status is requested again on each next connection."""
    calling = start(client)
    call = await resumable.expect("call_tool")
    peer = resumable
    for _ in range(3):
        peer = await reconnected(daemon, peer)
        await peer.expect("call_status")
    next_peer = await reconnected(daemon, peer)
    await next_peer.status(id="done")
    await next_peer.answer(call, "paid")
    assert (await calling).text == "paid"
    assert not client._session._background  # requests of lost connections are no longer awaited


async def test_calls_that_may_have_run_are_not_sent_in_a_new_session(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    """They fail; the next call uses the new session."""
    calls = [start(client, name) for name in ("a", "b")]
    for _ in calls:
        await resumable.expect("call_tool")
    daemon.key = "second key"
    next_peer = await reconnected(daemon, resumable)
    ended = await asyncio.gather(*calls, return_exceptions=True)
    for error in ended:
        assert isinstance(error, ConnectionLostError)
        assert error.executed == "maybe"
        assert "no longer knows the session" in str(error)
    assert ended[0] is not ended[1]
    assert "could not be resumed" in caplog.text
    calling = start(client, "c")
    call = await next_peer.expect("call_tool")
    assert call["request_id"] == "c"
    await next_peer.answer(call)
    await calling
    third = await reconnected(daemon, next_peer)
    assert third.hello["resume"]["key"] == "second key"


async def test_a_too_long_frame_ends_the_session(daemon: ScriptedDaemon) -> None:
    """It would be redelivered forever, so its calls fail and a new session starts."""
    daemon.key = "key"
    async with MCPWebSocketClient(port=daemon.port, max_message_size=2000) as client:
        peer = await daemon.accept()
        calls = [start(client, name) for name in ("large", "other")]
        for _ in calls:
            await peer.expect("call_tool")
        await peer.answer({"request_id": "large"}, "x" * 3000)
        for ended in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(ended, ConnectionLostError)
            assert (ended.close_code, ended.executed) == (1009, "maybe")
        assert "resume" not in (await daemon.accept()).hello


async def test_a_disconnect_ends_the_session(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Calls in flight fail, and the next hello has no resume key."""
    calling = start(client)
    await resumable.expect("call_tool")
    await client.disconnect()
    with pytest.raises(ConnectionLostError):
        await calling
    assert await client.connect()
    assert "resume" not in (await daemon.accept()).hello


async def test_a_call_without_auto_reconnect_ends_with_its_connection(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Its later answer is dropped and acknowledged."""
    calling = start(client, auto_reconnect=False)
    call = await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    with pytest.raises(ConnectionLostError, match="may have run"):
        await calling
    await next_peer.answer(call)
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ["id"]


# --- acknowledging ---------------------------------------------------------------------------------------------------


async def answered(client: MCPWebSocketClient, peer: Peer, count: int, prefix: str = "call") -> list[str]:
    """Make calls one after the other and answer them; returns their ids."""
    ids = [f"{prefix}-{number}" for number in range(count)]
    for request_id in ids:
        calling = start(client, request_id)
        await peer.answer(await peer.expect("call_tool"))
        await calling
    return ids


async def test_answers_are_acknowledged_in_batches(
    client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full batch is acknowledged at once."""
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_AFTER_S", 1000.0)
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_COUNT", 3)
    ids = await answered(client, resumable, 3)
    assert (await resumable.expect("acknowledge"))["request_ids"] == ids
    ids = await answered(client, resumable, 2, "more")
    await client.disconnect()
    assert (await resumable.expect("acknowledge"))["request_ids"] == ids


async def test_few_answers_are_acknowledged_after_a_delay(
    client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is not full is acknowledged after the delay."""
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_AFTER_S", 0.01)
    for prefix in ("a", "b"):
        ids = await answered(client, resumable, 1, prefix)
        assert (await resumable.expect("acknowledge"))["request_ids"] == ids


async def test_pending_acknowledgements_are_sent_after_a_reconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the daemon would redeliver those answers at every resume."""
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_AFTER_S", 1000.0)
    ids = await answered(client, resumable, 2)
    next_peer = await reconnected(daemon, resumable)
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ids


async def test_without_a_session_nothing_is_acknowledged(
    client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon retains nothing for this client."""
    monkeypatch.setattr(client_session, "ACKNOWLEDGE_COUNT", 1)
    await answered(client, peer, 2)
    await client.disconnect()
    await peer.socket.wait_closed()
    assert peer.frames.empty()


# --- cancelling ------------------------------------------------------------------------------------------------------


async def test_a_call_abandoned_while_disconnected_is_cancelled_after_the_reconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """The cancel is repeated on each connection until the answer arrives."""
    calling = start(client)
    call = await resumable.expect("call_tool")
    ack, daemon.ack = daemon.ack, None  # the next connection hangs until the call is given up
    resumable.cut()
    await daemon.accept()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    daemon.ack = ack
    for peer in list(daemon.open):
        peer.cut()
    next_peer = await daemon.accept()
    assert (await next_peer.expect("cancel"))["request_id"] == "id"
    next_peer = await reconnected(daemon, next_peer)
    assert (await next_peer.expect("cancel"))["request_id"] == "id"
    await next_peer.answer(call, outputs=[], error=CANCELLED)
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ["id"]
    next_peer = await reconnected(daemon, next_peer)
    await answered(client, next_peer, 1)  # no cancel before it


async def test_a_call_abandoned_before_it_was_sent_is_never_sent(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Neither the call nor a cancel is sent."""
    resumable.cut()
    while client.connected:
        await asyncio.sleep(0)
    calling = start(client, "unsent")
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await answered(client, await daemon.accept(), 1)  # which expects a call and nothing before it


async def test_cancel_while_disconnected_is_sent_after_the_reconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """The call is not resent."""
    calling = start(client)
    call = await resumable.expect("call_tool")
    resumable.cut()
    while client.connected:
        await asyncio.sleep(0)
    cancelling = asyncio.create_task(client.cancel("id"))
    next_peer = await daemon.accept()
    assert (await next_peer.expect("cancel"))["request_id"] == "id"
    await next_peer.status(id="unknown")
    await next_peer.answer(call, outputs=[], error=CANCELLED)
    assert await cancelling is True
    with pytest.raises(CallCancelledError):
        await calling
    assert (await next_peer.expect("acknowledge"))["request_ids"] == ["id"]


async def test_cancel_of_a_call_that_never_arrived_ends_it(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """The daemon does not know it: it had no effect."""
    calling = start(client)
    await resumable.expect("call_tool")
    cancelling = asyncio.create_task(client.cancel("id"))
    await resumable.expect("cancel")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.expect("cancel")
    await next_peer.send("cancel_res", request_id="id", status="unknown")
    assert await cancelling is True
    with pytest.raises(CallCancelledError) as cancelled:
        await calling
    assert cancelled.value.executed == "no"


async def test_a_cancelled_call_is_not_resent(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """Even if the cancel overtakes the status request."""
    calling = start(client)
    await resumable.expect("call_tool")
    next_peer = await reconnected(daemon, resumable)
    await next_peer.expect("call_status")
    cancelling = asyncio.create_task(client.cancel("id"))
    await next_peer.expect("cancel")
    await next_peer.send("call_status_res", calls={"id": "unknown"})
    pinging = asyncio.create_task(client.ping())
    await next_peer.send("pong", request_id=(await next_peer.expect("ping"))["request_id"])  # with no call before it
    await pinging
    await next_peer.send("cancel_res", request_id="id", status="unknown")
    assert await cancelling is True
    with pytest.raises(CallCancelledError):
        await calling
    assert next_peer.frames.empty()


async def test_a_resent_call_respects_the_new_frame_limit(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, resumable: Peer
) -> None:
    """If a resent call exceeds the new limit, only that call fails."""
    calling = asyncio.create_task(client.call("pay", {"to": "x" * 2000}, request_id="id"))
    await resumable.expect("call_tool")
    limits = dict.fromkeys(("max_inflight", "ping_interval_s", "default_timeout_s", "max_timeout_s"), 1)
    limits |= {"max_frame_bytes": 1000, "progress_window_s": 1, "result_ttl_s": 1}
    assert daemon.ack is not None
    daemon.ack |= {"limits": limits}
    next_peer = await reconnected(daemon, resumable)
    await next_peer.status(id="unknown")
    with pytest.raises(InvalidArgumentsError, match="1,000"):
        await calling
    assert client.connected


async def test_tool_changes_are_reported(daemon: ScriptedDaemon) -> None:
    """When announced, and after a reconnect; not if the revision is the same."""
    assert daemon.ack is not None
    daemon.ack |= {"tools_rev": "one"}
    revs: asyncio.Queue[str] = asyncio.Queue()
    async with MCPWebSocketClient(port=daemon.port, on_tools_changed=revs.put_nowait):
        peer = await daemon.accept()
        assert peer.hello["features"][-1] == "tools_changed"
        await peer.send("tools_changed", rev="two")
        assert await asyncio.wait_for(revs.get(), 20) == "two"
        daemon.ack |= {"tools_rev": "two"}
        peer = await reconnected(daemon, peer)
        daemon.ack |= {"tools_rev": "three"}
        await reconnected(daemon, peer)
        assert await asyncio.wait_for(revs.get(), 20) == "three"
