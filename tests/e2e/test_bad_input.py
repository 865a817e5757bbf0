"""Invalid input gets the answer in docs/protocol.md; the connection and all others stay open."""

import asyncio
import contextlib
import json
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus


async def first_frame(daemon: Any, data: str | bytes) -> tuple[dict[str, Any], int | None, str | None]:
    """Send a first frame. Returns its ack and the close code."""
    async with connect(daemon.url, compression=None) as socket:
        await socket.send(data)
        ack = json.loads(await socket.recv())
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 10)
        return ack, socket.close_code, socket.close_reason


@pytest.mark.parametrize(
    ("data", "close_code", "error"),
    [
        ("not json", 4000, "PROTOCOL_ERROR"),
        ("[1,2]", 4000, "PROTOCOL_ERROR"),
        (b'{"op":"hello"}', 4000, "PROTOCOL_ERROR"),
        ('{"op":"call_tool","name":"echo"}', 4001, "PROTOCOL_ERROR"),
        ("{}", 4001, "PROTOCOL_ERROR"),
        ('{"op":"hello","token":"wrong"}', 4003, "UNAUTHORIZED"),
        ('{"op":"hello"}', 4003, "UNAUTHORIZED"),
    ],
)
async def test_an_invalid_first_frame_is_rejected_with_its_close_code(
    daemon: Any, data: str | bytes, close_code: int, error: str
) -> None:
    """The ack has the reason, then the connection closes with the specific code."""
    ack, code, reason = await first_frame(daemon, data)
    assert (ack["op"], ack["ok"], ack["error"]["code"]) == ("hello_ack", False, error)
    assert (code, reason) == (close_code, error)


async def test_a_connection_without_hello_is_closed_with_4002(start_daemon: Any) -> None:
    """A silent connection is closed."""
    daemon = start_daemon(TOOLD_HELLO_TIMEOUT_S="0.2")
    async with connect(daemon.url, compression=None) as socket:
        assert json.loads(await socket.recv())["error"]["code"] == "PROTOCOL_ERROR"
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 10)
        assert socket.close_code == 4002


@pytest.mark.parametrize("origin", ["https://example.org", "null", "http://127.0.0.1:8079"])
async def test_a_foreign_origin_gets_403(daemon: Any, origin: str) -> None:
    """Pages of other sites cannot connect to a loopback daemon."""
    with pytest.raises(InvalidStatus) as refused:
        await connect(daemon.url, additional_headers={"Origin": origin}).__aenter__()
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize("session_id", [None, "", "a b", "x" * 65, 7])
async def test_a_malformed_session_id_is_replaced_with_a_notice(make_peer: Any, session_id: object) -> None:
    """The connection opens under a generated label."""
    async with make_peer(session_id=session_id) as peer:
        assert peer.ack["session_id_generated"] is True
        assert "session_id" in peer.ack["notice"]
        assert (await peer.call(1, "echo", text="x"))["error"] is None


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[1]", "an array"),
        ("42", "a number"),
        (b"\x00\x01", "Binary"),
        ('{"no":"op"}', "op"),
        ('{"op":"call_tol"}', "did you mean 'call_tool'"),
        ('{"op":"hello"}', "hello was already sent"),
    ],
)
async def test_invalid_later_frames_get_an_error_frame(peer: Any, data: str | bytes, word: str) -> None:
    """The error has the reason, and the connection stays open."""
    await peer.socket.send(data)
    frame = await peer.until("error")
    assert frame["error"]["code"] == "PROTOCOL_ERROR"
    assert word in frame["error"]["message"]
    assert frame["error"]["executed"] == "no"
    assert (await peer.call("after", "echo", text="still here"))["outputs"][0]["text"] == "still here"


@pytest.mark.parametrize(
    ("fields", "code", "word"),
    [
        ({"arguments": {}}, "INVALID_REQUEST", "name"),
        ({"name": "echo", "arguments": [1]}, "INVALID_REQUEST", "arguments"),
        ({"name": "echo", "arguments": {"text": "x"}, "timeout_ms": -1}, "INVALID_REQUEST", "timeout_ms"),
        ({"name": "ehco"}, "TOOL_NOT_FOUND", "echo"),
        ({"name": "echo", "arguments": {}}, "VALIDATION_ERROR", "text"),
        ({"name": "echo", "arguments": {"text": 5}}, "VALIDATION_ERROR", "text"),
        ({"name": "echo", "arguments": {"txet": "x"}}, "VALIDATION_ERROR", "txet"),
        ({"name": "chat", "arguments": {"prompt": "x", "model": "kimi-k9"}}, "VALIDATION_ERROR", "kimi-k9"),
        ({"name": "chat", "arguments": {"prompt": "x", "files": ["/etc/passwd"]}}, "PERMISSION_DENIED", "/etc/passwd"),
        ({"name": "chat", "arguments": {"prompt": "x", "files": ["nope.py"]}}, "NOT_FOUND", "nope.py"),
    ],
)
async def test_a_wrong_call_is_answered_under_its_id(peer: Any, fields: dict[str, Any], code: str, word: str) -> None:
    """Exactly one call_tool_res names the field or the file."""
    await peer.send(op="call_tool", request_id="wrong", **fields)
    frame = await peer.until("call_tool_res", "wrong")
    assert frame["error"]["code"] == code
    assert word in frame["error"]["message"]
    assert frame["error"]["executed"] == "no"
    assert "Traceback" not in json.dumps(frame)


@pytest.mark.parametrize("request_id", [7, 0, -1, 7.5, 10**25, "7", "", "ü" * 100])
async def test_request_ids_are_returned_unchanged(peer: Any, request_id: object) -> None:
    """Numbers stay numbers."""
    frame = await peer.call(request_id, "echo", text="x")
    assert frame["request_id"] == request_id
    assert type(frame["request_id"]) is type(request_id)


async def test_a_call_without_an_id_gets_one(peer: Any) -> None:
    """The server generates an id for ack and answer."""
    await peer.send(op="call_tool", name="echo", arguments={"text": "x"})
    ack = await peer.until("call_tool_ack")
    frame = await peer.until("call_tool_res", ack["request_id"])
    assert len(frame["request_id"]) == 32


async def test_old_frame_formats_are_accepted(peer: Any) -> None:
    """A tool_call with ``tool`` and ``id``, and tool names with the suffix of old clients, are accepted."""
    await peer.send(op="tool_call", id=5, tool={"name": "echo_EXAI-WS-VSCode"}, arguments={"text": "old"})
    frame = await peer.until("call_tool_res", 5)
    assert (frame["id"], frame["outputs"][0]["text"]) == (5, "old")


async def test_a_frame_over_the_limit_closes_only_its_connection(daemon: Any, peer: Any) -> None:
    """The connection closes with 1009; another connection stays open."""
    socket = await connect(daemon.url, compression=None)
    await socket.send(json.dumps({"op": "hello", "token": daemon.token}))
    await socket.recv()
    with contextlib.suppress(ConnectionClosed):  # the server closes before the whole frame is sent
        await socket.send("x" * (20 * 1024 * 1024 + 1))
    with pytest.raises(ConnectionClosed):
        await asyncio.wait_for(socket.recv(), 20)
    assert socket.close_code == 1009
    assert (await peer.call(1, "echo", text="x"))["error"] is None


@pytest.mark.parametrize(
    ("tool", "code", "executed"),
    [
        ("bad_raises", "TOOL_EXECUTION_ERROR", "no"),
        ("bad_exits", "TOOL_EXECUTION_ERROR", "no"),
        ("bad_returns", "TOOL_EXECUTION_ERROR", "yes"),
        ("bad_error", "TOOL_EXECUTION_ERROR", "no"),
    ],
)
async def test_a_misbehaving_tool_gets_one_answer(caller: Any, tool: str, code: str, executed: str) -> None:
    """For any misbehaviour of a tool its caller gets one error, and the daemon keeps running."""
    frame = await caller.call(1, tool)
    assert (frame["error"]["code"], frame["error"]["executed"]) == (code, executed)
    assert "Traceback" not in frame["error"]["message"]
    assert (await caller.call(2, "echo", text="x"))["error"] is None


@pytest.mark.parametrize(
    ("kind", "error"), [("number", "TOOL_EXECUTION_ERROR"), ("progress", "TOOL_EXECUTION_ERROR"), ("surrogate", None)]
)
async def test_an_invalid_report_does_not_lose_the_answer(caller: Any, kind: str, error: str | None) -> None:
    """An invalid chunk or progress report is repaired or fails the call, which gets an answer."""
    frame = await caller.call(1, "bad_streams", kind=kind)
    assert (frame["error"] and frame["error"]["code"]) == error


async def test_a_long_chunk_is_split_into_frames(peer: Any) -> None:
    """Joined chunks are split again, and nothing is lost."""
    await peer.send(op="call_tool", request_id=1, name="bad_streams", arguments={"kind": "flood"})
    lengths = []
    while (frame := await peer.receive())["op"] != "call_tool_res":
        lengths.append(len(frame.get("text", "")))
    assert sum(lengths) == 3_000_000
    assert max(lengths) <= 65_536


@pytest.mark.parametrize("rest", ['"op":"nope"', '"op":"call_tool","arguments":[]', '"op":"call_tool","name":"echo"'])
async def test_an_id_of_hundreds_of_digits_is_rejected(peer: Any, rest: str) -> None:
    """The id is not a usable number, so the error has no request id; the connection stays open."""
    await peer.socket.send('{"request_id":' + "1" * 400 + "," + rest + "}")
    frame = await peer.until("error")
    assert "request_id" not in frame
    assert (await peer.call(1, "echo", text="x"))["error"] is None


@pytest.mark.parametrize("request_ids", [["done", "done"], ["never"], ["done", 7, "done", "7"], []])
async def test_acknowledging_unknown_ids_is_harmless(peer: Any, request_ids: list[object]) -> None:
    """Repeated and unknown ids are ignored."""
    await peer.call("done", "echo", text="x")
    await peer.send(op="acknowledge", request_ids=request_ids)
    await peer.send(op="acknowledge", request_ids=request_ids)
    assert (await peer.call("after", "echo", text="x"))["error"] is None


@pytest.mark.parametrize("tool", ["bad_hangs", "bad_ignores_cancel"])
async def test_a_tool_that_hangs_is_answered_at_its_deadline(peer: Any, tool: str) -> None:
    """A call is answered at its deadline, even if the tool ignores its cancellation."""
    await peer.send(op="call_tool", request_id=1, name=tool, arguments={"seconds": 4}, timeout_ms=100)
    frame = await peer.until("call_tool_res", 1)
    assert (frame["error"]["code"], frame["error"]["executed"]) == ("TIMEOUT", "no")
    assert frame["metadata"]["latency_ms"] < 4000


async def test_a_tool_that_blocks_the_loop_only_delays_others(make_peer: Any) -> None:
    """Other calls wait for the same time and are answered."""
    async with make_peer() as other, make_peer() as peer:
        await peer.send(op="call_tool", request_id=1, name="bad_blocks", arguments={"seconds": 0.3})
        assert (await other.call(2, "echo", text="x"))["error"] is None
        assert (await peer.until("call_tool_res", 1))["outputs"][0]["text"] == "unblocked"


async def test_bad_input_logs_one_line(start_daemon: Any) -> None:
    """Invalid input logs one line and no traceback."""
    daemon = start_daemon()
    await first_frame(daemon, "not json")
    for request in (b"\x16\x03\x01 this is no HTTP\r\n\r\n", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"):
        reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
        writer.write(request)
        await reader.read()
        writer.close()
        await writer.wait_closed()
    async with daemon.peer() as peer:
        for frame in ("not json", "[]", '{"op":"zip"}', '{"op":"call_tool","arguments":[]}'):
            await peer.socket.send(frame)
            await peer.receive()
    assert daemon.stop() == 0
    log = daemon.logged()
    assert "Traceback" not in log
    assert (log.count("frame refused"), log.count("call refused")) == (3, 1)
    assert log.count("hello refused") == 1
    assert log.count("handshake refused") == 2
