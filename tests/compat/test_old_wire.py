"""The frames of EX-AI-MCP-Server's clients: what they send, and the fields that they read in the answers."""

import json
from typing import Any

import pytest
from tests.compat.conftest import Successor
from tests.simulated_daemon import TOKEN
from websockets.asyncio.client import ClientConnection, connect

PLAIN = {"op": "call_tool", "name": "echo", "arguments": {"text": "hello"}}
NESTED = {"op": "tool_call", "tool": {"name": "echo"}, "arguments": {"text": "hello"}}
WRONG = {"op": "call_tool", "name": "echo", "arguments": {"txet": "hello"}}


async def answer(socket: ClientConnection, **call: Any) -> dict[str, Any]:
    """The next ``call_tool_res``; these clients skip all other frames."""
    await socket.send(json.dumps(call))
    while True:
        frame: dict[str, Any] = json.loads(await socket.recv())
        if frame["op"] == "call_tool_res":
            return frame


@pytest.mark.asyncio(loop_scope="module")
async def test_each_old_client_finds_what_it_reads(successor: Successor) -> None:
    """Scripts read ``outputs`` and ``error``, others ``ok``; the stdio shim sends ``id`` and reads ``result``."""
    async with connect(successor.url) as socket:
        await socket.send(json.dumps({"op": "hello", "session_id": "ws-chat-1a2b3c", "token": TOKEN}))
        assert json.loads(await socket.recv())["ok"] is True

        for number, call in enumerate((PLAIN, NESTED)):
            frame = await answer(socket, request_id=f"{number:032x}", **call)
            assert frame["request_id"] == f"{number:032x}"
            assert not frame.get("error")
            assert (frame["ok"], frame["outputs"]) == (True, [{"type": "text", "text": "hello"}])

        failed = await answer(socket, request_id="f" * 32, **WRONG)
        assert (failed["ok"], failed["outputs"]) == (False, [])
        assert "txet is not an argument; did you mean 'text'?" in str(failed["error"])

        await socket.send(json.dumps({"op": "list_tools", "id": "list_1"}))
        listing = json.loads(await socket.recv())
        assert {"name", "description", "inputSchema"} <= listing["tools"][0].keys()
        assert (await answer(socket, id="call_1", **PLAIN))["result"] == [{"type": "text", "text": "hello"}]
        (problem,) = (await answer(socket, id="call_2", **WRONG))["result"]
        assert "txet is not an argument" in problem["text"]


@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_token_is_refused_as_before(successor: Successor) -> None:
    """Old clients read ``ok`` of the hello's answer, and print ``error``."""
    async with connect(successor.url) as socket:
        await socket.send(json.dumps({"op": "hello", "session_id": "ws-chat-1a2b3c", "token": "wrong"}))
        ack = json.loads(await socket.recv())
    assert ack["ok"] is False
    assert "UNAUTHORIZED" in str(ack["error"])
