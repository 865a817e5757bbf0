"""How calls end at the client: timeouts, cancellation, and the end of the connection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from toold.client import ConnectionLostError, MCPWebSocketClient, request_exchange
from toold.protocol.error_codes import CallCancelledError, CallTimeoutError

if TYPE_CHECKING:
    from tests.client.conftest import Peer
from .echo_calls import CANCELLED, start


async def test_a_client_side_timeout_cancels_the_call(
    client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After timeout and grace; a late answer is dropped."""
    monkeypatch.setattr(request_exchange, "GRACE_S", 0.0)
    task = start(client, "slow", timeout=0.05)
    slow = await peer.expect("call_tool")
    with pytest.raises(CallTimeoutError, match="did not answer") as late:
        await task
    assert (late.value.executed, late.value.retryable) == ("maybe", False)
    assert (await peer.expect("cancel"))["request_id"] == slow["request_id"]
    monkeypatch.undo()
    task = start(client, "next")
    following = await peer.expect("call_tool")
    await peer.answer(slow, "slow")
    await peer.answer(following, "next")
    assert (await task).text == "next"


async def test_the_daemons_timeout_error_is_preferred(client: MCPWebSocketClient, peer: Peer) -> None:
    """An answer just after the deadline still counts."""
    task = start(client, timeout=0.001)
    call = await peer.expect("call_tool")
    await asyncio.sleep(0.02)
    error = {"code": "TIMEOUT", "message": "1 ms passed in the tool", "executed": "no", "retryable": True}
    await peer.answer(call, outputs=[], error=error)
    with pytest.raises(CallTimeoutError, match="in the tool"):
        await task


async def test_cancelling_a_task_cancels_its_call(client: MCPWebSocketClient, peer: Peer) -> None:
    """The client sends a cancel for the task's call."""
    task = start(client)
    call = await peer.expect("call_tool")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await peer.expect("cancel"))["request_id"] == call["request_id"]


async def test_disconnecting_sends_the_cancel_before_the_close(client: MCPWebSocketClient, peer: Peer) -> None:
    """The cancel of a task that was cancelled just before is still sent."""
    task = start(client)
    await peer.expect("call_tool")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await client.disconnect()
    await peer.expect("cancel")


@pytest.mark.parametrize("code", [1000, 1001, 1008, 1009, 1011, 1012, 4003, 4004])
async def test_the_end_of_the_connection_fails_every_call_at_once(
    client: MCPWebSocketClient, peer: Peer, code: int
) -> None:
    """With ConnectionLostError, code and reason; the calls may have run."""
    tasks = [start(client) for _ in range(3)]
    for _ in tasks:
        await peer.expect("call_tool")
    await peer.socket.close(code, "because")
    for ended in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(ended, ConnectionLostError)
        assert (ended.close_code, ended.executed) == (code, "maybe")
        assert f"{code} because" in str(ended)
    assert not client.connected


async def test_an_end_without_a_close_frame_is_1006(client: MCPWebSocketClient, peer: Peer) -> None:
    """The call in flight fails with close code 1006."""
    task = start(client)
    await peer.expect("call_tool")
    peer.socket.transport.abort()
    with pytest.raises(ConnectionLostError) as lost:
        await task
    assert lost.value.close_code == 1006


async def test_disconnect_fails_the_calls_in_flight(client: MCPWebSocketClient, peer: Peer) -> None:
    """They fail at once, without waiting for their answers."""
    task = start(client)
    await peer.expect("call_tool")
    await client.disconnect()
    with pytest.raises(ConnectionLostError):
        await task


async def test_cancel_ends_a_running_call(client: MCPWebSocketClient, peer: Peer) -> None:
    """The call raises CallCancelledError, and cancel() returns True."""
    task = start(client, request_id="mine")
    call = await peer.expect("call_tool")
    assert call["request_id"] == "mine"
    cancelling = asyncio.create_task(client.cancel("mine"))
    assert (await peer.expect("cancel"))["request_id"] == "mine"
    await peer.answer(call, outputs=[], error=CANCELLED)
    assert await cancelling is True
    with pytest.raises(CallCancelledError):
        await task


async def test_a_late_cancel_returns_false(client: MCPWebSocketClient, peer: Peer) -> None:
    """The call has its result; the cancel_res is dropped."""
    task = start(client, request_id="mine")
    call = await peer.expect("call_tool")
    cancelling = asyncio.create_task(client.cancel("mine"))
    await peer.expect("cancel")
    await peer.answer(call, "first")
    await peer.send("cancel_res", request_id="mine", status="done")
    assert await cancelling is False
    assert (await task).text == "first"


async def test_cancel_of_a_call_that_does_not_run_returns_false(client: MCPWebSocketClient, peer: Peer) -> None:
    """An unknown id is not an error."""
    cancelling = asyncio.create_task(client.cancel("unknown"))
    await peer.expect("cancel")
    await peer.send("cancel_res", request_id="unknown", status="unknown")
    assert await cancelling is False
