"""One connection: concurrent calls and requests, each with its own answer."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.client import ConnectionLostError, MCPWebSocketClient, request_exchange
from toold.client.pending_answers import PendingAnswers
from toold.protocol.error_codes import CallTimeoutError, InvalidArgumentsError, ProtocolError
from toold.protocol.tool_call import Progress
from websockets.sync.server import ServerConnection as ThreadedConnection
from websockets.sync.server import serve as serve_in_thread

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon
from .echo_calls import BUSY, start


@given(order=st.permutations(range(6)), noise=st.lists(st.integers(0, 5), max_size=6))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_concurrent_calls_get_their_own_answers_in_any_order(order: list[int], noise: list[int]) -> None:
    """Six calls on a real socket get their own answers, in any order and with duplicates."""
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
    """The call has name, arguments and timeout; the result has outputs, data, metadata and id."""
    task = start(client, timeout=2.5)
    call = await peer.expect("call_tool")
    assert (call["name"], call["arguments"], call["timeout_ms"]) == ("echo", {"text": "hi"}, 2500)
    await peer.answer(call, "hi", structured={"a": 1})
    result = await task
    assert (result.text, result.structured, result.request_id) == ("hi", {"a": 1}, call["request_id"])
    assert result.metadata.timings.tool_ms == 1.0


async def test_request_ids_are_fresh_uuids(client: MCPWebSocketClient, peer: Peer) -> None:
    """Each call has a different id of 32 hexadecimal digits."""
    tasks = [start(client), start(client)]
    calls = [await peer.expect("call_tool") for _ in tasks]
    ids = {call["request_id"] for call in calls}
    assert len(ids) == 2
    assert all(len(request_id) == 32 and int(request_id, 16) >= 0 for request_id in ids)
    for call in calls:
        await peer.answer(call)
    await asyncio.gather(*tasks)


async def test_progress_and_chunks_are_called_back(client: MCPWebSocketClient, peer: Peer) -> None:
    """The callbacks run in order, while the call runs."""
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
    """The default limit allows them."""
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
    """If the daemon cannot read a call's frame, the call gets the error."""
    task = start(client)
    call = await peer.expect("call_tool")
    error = {"code": "PROTOCOL_ERROR", "message": "what?", "executed": "no", "retryable": False}
    await peer.send("error", request_id=call["request_id"], error=error)
    with pytest.raises(ProtocolError, match=r"what\?"):
        await task


async def test_list_tools_health_and_ping_are_answered_during_a_call(client: MCPWebSocketClient, peer: Peer) -> None:
    """They are matched by id."""
    task = start(client)
    call = await peer.expect("call_tool")

    tools = asyncio.create_task(client.list_tools())
    request = await peer.expect("list_tools")
    hints = dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), False)
    tool = {"name": "echo", "description": "says it back", "inputSchema": {"type": "object"}, "annotations": hints}
    await peer.send("list_tools_res", request_id=request["request_id"], tools=[tool], rev="1")
    assert [tool.name for tool in await tools] == ["echo"]

    health = asyncio.create_task(client.health())
    request = await peer.expect("health")
    await peer.send("health_res", request_id=request["request_id"], health={"ready": True})
    assert await health == {"ready": True}

    ping = asyncio.create_task(client.ping())
    request = await peer.expect("ping")
    await peer.send("pong", request_id=request["request_id"])
    assert await ping >= 0

    assert not task.done()
    await peer.answer(call)
    await task


async def test_an_unanswered_ping_times_out(
    client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It raises CallTimeoutError."""
    monkeypatch.setattr(request_exchange, "REQUEST_TIMEOUT_S", 0.02)
    with pytest.raises(CallTimeoutError, match="ping"):
        await client.ping()
    await peer.expect("ping")


async def test_a_rejected_request_raises_the_daemons_error(client: MCPWebSocketClient, peer: Peer) -> None:
    """The exception has the message of the error frame."""
    asking = asyncio.create_task(client.health())
    request = await peer.expect("health")
    await peer.send("error", request_id=request["request_id"], error=BUSY)
    with pytest.raises(Exception, match="too much"):
        await asking


async def test_a_reader_that_fails_hides_nothing(
    daemon: ScriptedDaemon,
    client: MCPWebSocketClient,
    peer: Peer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """An exception in the reader is logged with its traceback and ends the connection; the client then reconnects."""

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
