"""One connection: concurrent calls, each with its own answer, which all end with the connection."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.client import (
    CallResult,
    ConnectionLostError,
    MCPWebSocketClient,
    client_connection,
    client_session,
    request_exchange,
)
from toold.client.pending_answers import PendingAnswers
from toold.client.socket_opening import OpenSocket
from toold.protocol.error_codes import CallCancelledError, CallTimeoutError, InvalidArgumentsError, ProtocolError
from toold.protocol.tool_call import Progress
from websockets.protocol import State
from websockets.sync.server import ServerConnection as ThreadedConnection
from websockets.sync.server import serve as serve_in_thread

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon

CANCELLED = {"code": "CANCELLED", "message": "cancelled", "executed": "maybe", "retryable": False}
BUSY = {"code": "OVER_CAPACITY", "message": "too much", "executed": "no", "retryable": True}


def start(client: MCPWebSocketClient, text: str = "hi", **options: Any) -> asyncio.Task[CallResult]:
    return asyncio.create_task(client.call("echo", {"text": text}, **options))


@given(order=st.permutations(range(6)), noise=st.lists(st.integers(0, 5), max_size=6))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_concurrent_calls_get_their_own_answers_in_any_order(order: list[int], noise: list[int]) -> None:
    """Six calls on a real socket, answered in any order and with duplicates."""
    from websockets.asyncio.server import ServerConnection, serve

    async def handler(socket: ServerConnection) -> None:
        await socket.recv()
        await socket.send('{"op":"hello_ack","ok":true}')
        calls = [json.loads(await socket.recv()) for _ in order]
        for index in [*order, *noise]:
            block = {"type": "text", "text": calls[index]["arguments"]["text"]}
            answer = {"request_id": calls[index]["request_id"], "outputs": [block], "error": None}
            await socket.send(json.dumps({"op": "call_tool_res", **answer}))
        await socket.wait_closed()

    async def main() -> None:
        async with (
            serve(handler, "127.0.0.1", 0) as server,
            MCPWebSocketClient(port=server.sockets[0].getsockname()[1]) as client,
        ):
            results = await asyncio.gather(*(start(client, str(number)) for number in range(len(order))))
        assert [result.text for result in results] == [str(number) for number in range(len(order))]

    asyncio.run(main())


async def test_a_call_sends_its_fields_and_returns_its_result(client: MCPWebSocketClient, peer: Peer) -> None:
    """Name, arguments and timeout; outputs, data, metadata and id."""
    task = start(client, timeout=2.5)
    call = await peer.expect("call_tool")
    assert (call["name"], call["arguments"], call["timeout_ms"]) == ("echo", {"text": "hi"}, 2500)
    await peer.answer(call, "hi", structured={"a": 1})
    result = await task
    assert (result.text, result.structured, result.request_id) == ("hi", {"a": 1}, call["request_id"])
    assert result.metadata.timings.tool_ms == 1.0


async def test_request_ids_are_fresh_uuids(client: MCPWebSocketClient, peer: Peer) -> None:
    """32 hexadecimal digits, different for each call."""
    tasks = [start(client), start(client)]
    calls = [await peer.expect("call_tool") for _ in tasks]
    ids = {call["request_id"] for call in calls}
    assert len(ids) == 2
    assert all(len(request_id) == 32 and int(request_id, 16) >= 0 for request_id in ids)
    for call in calls:
        await peer.answer(call)
    await asyncio.gather(*tasks)


async def test_progress_and_chunks_are_called_back(client: MCPWebSocketClient, peer: Peer) -> None:
    """In order, while the call runs."""
    progress: list[Progress] = []
    chunks: list[str] = []
    task = start(client, on_progress=progress.append, on_chunk=chunks.append)
    call = await peer.expect("call_tool")
    await peer.send("progress", request_id=call["request_id"], seq=1, message="half", done=1, total=2)
    await peer.send("stream_chunk", request_id=call["request_id"], seq=1, text="a")
    await peer.send("stream_chunk", request_id=call["request_id"], seq=2, text="b")
    await peer.answer(call, "ab")
    await task
    assert progress == [Progress("half", 1, 2)]
    assert chunks == ["a", "b"]


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
    """At the daemon."""
    task = start(client)
    call = await peer.expect("call_tool")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await peer.expect("cancel"))["request_id"] == call["request_id"]


async def test_disconnecting_sends_the_cancel_before_the_close(client: MCPWebSocketClient, peer: Peer) -> None:
    """Of a task that was cancelled just before."""
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
    """And fails the call as well."""
    task = start(client)
    await peer.expect("call_tool")
    peer.socket.transport.abort()
    with pytest.raises(ConnectionLostError) as lost:
        await task
    assert lost.value.close_code == 1006


async def test_disconnect_fails_the_calls_in_flight(client: MCPWebSocketClient, peer: Peer) -> None:
    """At once."""
    task = start(client)
    await peer.expect("call_tool")
    await client.disconnect()
    with pytest.raises(ConnectionLostError):
        await task


@pytest.mark.parametrize("frame", ["no JSON", "[1]", '{"op":"later"}', '{"op":"progress"}', b"\xff\xfe", b"{}"])
async def test_malformed_frames_are_skipped(client: MCPWebSocketClient, peer: Peer, frame: str | bytes) -> None:
    """The answer after them is delivered."""
    task = start(client)
    call = await peer.expect("call_tool")
    await peer.socket.send(frame)
    await peer.answer(call, "fine")
    assert (await task).text == "fine"


async def test_an_answer_over_the_clients_limit_ends_the_connection_with_1009(daemon: ScriptedDaemon) -> None:
    """Calls in flight get the reason."""
    async with MCPWebSocketClient(port=daemon.port, max_message_size=2000) as client:
        peer = await daemon.accept()
        task = start(client)
        await peer.answer(await peer.expect("call_tool"), "x" * 3000)
        with pytest.raises(ConnectionLostError) as lost:
            await task
    assert lost.value.close_code == 1009


async def test_answers_of_20_mib_are_received(client: MCPWebSocketClient, peer: Peer) -> None:
    """The default limit."""
    text = "x" * (20 * 1024 * 1024 - 1000)
    task = start(client)
    await peer.answer(await peer.expect("call_tool"), text)
    assert len((await task).text) == len(text)


async def test_a_call_over_the_daemons_limit_is_not_sent(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """It is refused locally, and the connection stays."""
    limits = dict.fromkeys(("max_inflight", "ping_interval_s", "default_timeout_s", "max_timeout_s"), 1)
    limits |= {"max_frame_bytes": 1000, "progress_window_s": 1, "result_ttl_s": 1}
    assert daemon.ack is not None
    daemon.ack |= {"limits": limits}
    await client.connect()
    with pytest.raises(InvalidArgumentsError, match="1,000") as refused:
        await client.call("echo", {"text": "x" * 1000})
    assert refused.value.executed == "no"
    assert client.connected


async def test_an_addressed_error_frame_ends_its_call(client: MCPWebSocketClient, peer: Peer) -> None:
    """A frame that the daemon could not read."""
    task = start(client)
    call = await peer.expect("call_tool")
    error = {"code": "PROTOCOL_ERROR", "message": "what?", "executed": "no", "retryable": False}
    await peer.send("error", request_id=call["request_id"], error=error)
    with pytest.raises(ProtocolError, match=r"what\?"):
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


async def test_list_tools_health_and_ping_are_answered_during_a_call(client: MCPWebSocketClient, peer: Peer) -> None:
    """They are matched by id."""
    task = start(client)
    call = await peer.expect("call_tool")

    tools = asyncio.create_task(client.list_tools())
    asked = await peer.expect("list_tools")
    hints = dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), False)
    tool = {"name": "echo", "description": "says it back", "inputSchema": {"type": "object"}, "annotations": hints}
    await peer.send("list_tools_res", request_id=asked["request_id"], tools=[tool], rev="1")
    assert [tool.name for tool in await tools] == ["echo"]

    health = asyncio.create_task(client.health())
    asked = await peer.expect("health")
    await peer.send("health_res", request_id=asked["request_id"], health={"ready": True})
    assert await health == {"ready": True}

    ping = asyncio.create_task(client.ping())
    asked = await peer.expect("ping")
    await peer.send("pong", request_id=asked["request_id"])
    assert await ping >= 0

    assert not task.done()
    await peer.answer(call)
    await task


async def test_an_unanswered_ping_times_out(
    client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CallTimeoutError."""
    monkeypatch.setattr(request_exchange, "REQUEST_TIMEOUT_S", 0.02)
    with pytest.raises(CallTimeoutError, match="ping"):
        await client.ping()
    await peer.expect("ping")


async def test_a_rejected_request_raises_the_daemons_error(client: MCPWebSocketClient, peer: Peer) -> None:
    """From its error frame."""
    asking = asyncio.create_task(client.health())
    asked = await peer.expect("health")
    await peer.send("error", request_id=asked["request_id"], error=BUSY)
    with pytest.raises(Exception, match="too much"):
        await asking


async def test_a_reader_that_fails_hides_nothing(
    daemon: ScriptedDaemon,
    client: MCPWebSocketClient,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whatever ends the reader is logged with its traceback and ends the connection; the next one takes its place."""

    def fail(self: PendingAnswers, frame: object) -> None:
        raise RuntimeError("a mistake in the reader")

    monkeypatch.setattr(PendingAnswers, "deliver", fail)
    task = start(client)
    await peer.answer(await peer.expect("call_tool"))
    with pytest.raises(ConnectionLostError):
        await task
    assert "a mistake in the reader" in caplog.text
    await daemon.accept()


def test_a_client_that_was_left_connected_ends_with_its_loop(caplog: pytest.LogCaptureFixture) -> None:
    """A program that forgets to disconnect ends without warnings or reconnects."""

    def handler(socket: ThreadedConnection) -> None:
        socket.recv()
        socket.send('{"op":"hello_ack","ok":true}')
        for _ in socket:
            pass

    async def main(port: int) -> None:
        assert await MCPWebSocketClient(port=port).connect()

    with serve_in_thread(handler, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        asyncio.run(main(server.socket.getsockname()[1]))
        gc.collect()
        server.shutdown()
        thread.join()
    assert not [record for record in caplog.records if record.name == "asyncio"]


async def test_a_silent_peer_is_detected_within_two_heartbeats(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even with unsent data in the socket."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.05)
    monkeypatch.setattr(client_connection, "PING_TIMEOUT_S", 0.05)
    assert await client.connect()
    peer = await daemon.accept()
    peer.socket.transport.pause_reading()
    large = start(client, "x" * (8 * 1024 * 1024))  # more than a socket takes: not even a ping gets out
    with pytest.raises(ConnectionLostError, match=r"no pong within 0\.05 s") as lost:
        await large
    assert lost.value.close_code == 1011
    peer.socket.transport.resume_reading()
    await daemon.accept()


async def test_a_peer_that_answers_pings_stays_connected(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over many heartbeats."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.001)
    assert await client.connect()
    peer = await daemon.accept()
    current = client._link.connection
    assert current is not None
    while peer.socket.state is State.OPEN and not current.confirmed:  # by a pong: no frame came
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    assert client.connected
    assert daemon.connections == 1


async def test_a_peer_that_is_sending_is_not_considered_silent(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large answer on a slow line delays the pong."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.01)
    monkeypatch.setattr(client_connection, "PING_TIMEOUT_S", 0.01)
    rounds = 0

    async def ping(self: OpenSocket, data: object = None) -> asyncio.Future[float]:
        nonlocal rounds
        rounds += 1
        if rounds <= 3:
            self.data_received(b"")  # a part of a frame; no pong
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(OpenSocket, "ping", ping)
    assert await client.connect()
    await daemon.accept()
    while client.last_error is None:
        await asyncio.sleep(0.001)
    assert rounds == 4
    assert "no pong" in str(client.last_error)


async def test_a_peer_that_reads_nothing_cannot_block_the_disconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The close has a timeout."""
    monkeypatch.setattr(client_connection, "CLOSE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(client_session, "FLUSH_S", 0.05)
    peer.socket.transport.pause_reading()
    task = start(client, "x" * (8 * 1024 * 1024))
    await asyncio.sleep(0)
    async with asyncio.timeout(4):
        await client.disconnect()
    with pytest.raises(ConnectionLostError):
        await task
    peer.socket.transport.resume_reading()
