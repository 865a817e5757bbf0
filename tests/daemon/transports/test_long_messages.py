"""A message that takes long, or many messages at once, delay no other client."""

import asyncio
import json
import threading
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, model_serializer, model_validator
from toold.daemon.transports import peer_connection
from toold.daemon.transports.websocket_connection import WebSocketConnection
from toold.protocol.json_pieces import MAX_VALUES
from toold.protocol.tool_call import Annotations
from toold.tools import Tool, ToolOutput
from websockets.frames import Frame, Opcode

MANY = 2_000
"""Values that take more than ``LONG_BYTES`` as JSON."""
PINGS = 5_000


async def echo(arguments: Any, context: Any) -> Any:
    """Returns its argument."""
    return ToolOutput(data=(arguments.model_extra or {}).get("value"))


async def test_a_long_frame_is_decoded_and_validated_outside_of_the_loop(serve: Any, join: Any) -> None:
    """Meanwhile the daemon answers others; the connection's next frame waits."""
    validating, answered_others, threads, waited = threading.Event(), threading.Event(), [], []

    class Slow(BaseModel):
        value: list[str]

        @model_validator(mode="before")
        @classmethod
        def _wait(cls, data: Any) -> Any:
            threads.append(threading.current_thread())
            validating.set()
            waited.append(answered_others.wait(30))
            return data

    async def length(arguments: Slow, context: Any) -> int:
        return len(arguments.value)

    tool = Tool("length", "Counts.", Slow, length, Annotations(True, False, False, False))
    daemon = await serve(tool)
    peer, other = await join(daemon, features=["ack"]), await join(daemon)
    await peer.send("call_tool", request_id=1, name="length", arguments={"value": ["a long text"] * MANY * 2})
    await peer.send("ping", request_id="behind")
    await asyncio.to_thread(validating.wait, 30)
    await other.send("ping", request_id="other")
    assert (await other.receive())["request_id"] == "other"
    answered_others.set()
    assert (await peer.receive())["op"] == "call_tool_ack"
    frames = [await peer.receive(), await peer.receive()]
    assert sorted(frame["op"] for frame in frames) == ["call_tool_res", "pong"]
    assert waited == [True]
    assert threads[0] is not threading.current_thread()


@pytest.mark.parametrize("transport", ["websocket", "mcp"])
async def test_a_long_result_is_encoded_outside_of_the_loop(
    serve: Any, join: Any, make_tool: Any, transport: str
) -> None:
    """A short one is encoded at once."""
    threads = []

    class Part(BaseModel):
        @model_serializer
        def _record(self) -> str:
            threads.append(threading.current_thread())
            return "part"

    async def parts(arguments: Any, context: Any) -> Any:
        return [Part(), *range(arguments.model_extra["others"])]

    daemon = await serve(make_tool("parts", parts), TOOLD_DEFAULT_TOOLSET="full")
    for others, on_loop in ((3, True), (MANY, False)):
        if transport == "mcp":
            structured = (await posted(daemon, "parts", {"others": others})).json()["result"]["structuredContent"][
                "result"
            ]
        else:
            peer = await join(daemon)
            await peer.send("call_tool", request_id=1, name="parts", arguments={"others": others})
            structured = (await peer.until_answered(1))[-1]["structured"]
        assert structured == ["part", *range(others)]
        assert (threads.pop() is threading.current_thread()) is on_loop


async def posted(daemon: Any, tool: str, arguments: object) -> httpx.Response:
    """The answer to a call over MCP."""
    params = {"name": tool, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{daemon.http.port}", timeout=60, verify=False) as http:
        return await http.post("/mcp", content=body, headers=headers)


async def test_a_message_with_too_many_values_is_refused(serve: Any, join: Any, make_tool: Any) -> None:
    """The limit itself is accepted, over WebSocket and MCP."""
    daemon = await serve(make_tool("echo", echo), TOOLD_DEFAULT_TOOLSET="full")
    peer = await join(daemon)
    around = 20  # values besides the list
    for length, words in ((MAX_VALUES + 1, f"more than {MAX_VALUES} values"), (MAX_VALUES - around, "")):
        lists: Any = [[]] * length
        await peer.send("call_tool", request_id=7, name="echo", arguments={"value": lists})
        answer = (await peer.until_answered(7))[-1]
        response = (await posted(daemon, "echo", {"value": lists})).json()
        if words:
            assert words in answer["error"]["message"]
            assert (words in response["error"]["message"], response["error"]["code"]) == (True, -32600)
        else:
            assert answer["structured"] == response["result"]["structuredContent"]["result"] == lists


async def test_many_frames_in_one_read_delay_no_other_connection(
    serve: Any, join: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection's frame is handled before most of them, and all are answered in order."""
    daemon = await serve(make_tool("echo", echo))
    busy, other = await join(daemon), await join(daemon)
    monkeypatch.setattr(peer_connection, "_PARSE_S", 0.0)  # one piece per turn
    handled: list[object] = []
    receive = WebSocketConnection._receive

    async def record(connection: WebSocketConnection, frame: Any) -> None:
        handled.append(getattr(frame, "request_id", None))
        await receive(connection, frame)

    monkeypatch.setattr(WebSocketConnection, "_receive", record)
    pings = [json.dumps({"op": "ping", "request_id": number}).encode() for number in range(PINGS)]
    busy.socket.transport.write(b"".join(Frame(Opcode.TEXT, ping).serialize(mask=True) for ping in pings))
    await busy.send("call_tool", request_id="long", name="echo", arguments={"value": ["x" * 1000] * 1000})
    await other.send("ping", request_id="other")
    assert (await other.receive())["request_id"] == "other"
    assert [(await busy.receive())["request_id"] for _ in pings] == list(range(PINGS))
    assert len((await busy.until_answered("long"))[-1]["structured"]) == 1000
    assert handled.index("other") < PINGS / 2
