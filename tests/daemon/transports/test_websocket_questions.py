"""Questions over WebSocket: the Python client's callback, resuming, and what hostile clients try."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.frames import QuestionFrame
from toold.tools import Tool


class Color(BaseModel):
    """A form."""

    color: str


async def paint(_: Any, context: Any) -> str:
    """Asks for a color."""
    answer = await context.elicit("Which color?", Color)
    return "declined" if answer is None else str(answer.color)


@pytest.fixture
async def daemon(serve: Any, make_tool: Callable[..., Tool]) -> Daemon:
    started: Daemon = await serve(make_tool("paint", paint))
    return started


async def red(frame: QuestionFrame) -> dict[str, Any]:
    assert (frame.kind, frame.method, frame.params["message"]) == ("form", "elicitation/create", "Which color?")
    return {"action": "accept", "content": {"color": "red"}}


async def test_a_callback_answers_also_beyond_the_timeout(daemon: Daemon) -> None:
    """Neither side counts the time that a question waits."""

    async def slowly(frame: QuestionFrame) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        return await red(frame)

    async with MCPWebSocketClient(daemon.address().url, on_question=slowly) as client:
        assert (await client.call("paint", timeout=0.2)).text == "red"


async def test_an_exception_of_the_callback_is_the_reason(daemon: Daemon) -> None:
    """The tool's error has its text; a client without a callback is not asked."""

    async def refuse(_: QuestionFrame) -> dict[str, Any]:
        raise ValueError("not today")

    async with MCPWebSocketClient(daemon.address().url, on_question=refuse) as client:
        with pytest.raises(ToolExecutionError, match="not today"):
            await client.call("paint")
    async with MCPWebSocketClient(daemon.address().url) as client:
        with pytest.raises(ToolExecutionError, match="has not declared"):
            await client.call("paint")


async def test_a_question_is_asked_again_after_a_resume(daemon: Daemon) -> None:
    """The callback runs once; its answer arrives over the next connection."""
    asked, answer = asyncio.Event(), asyncio.Event()
    frames: list[QuestionFrame] = []

    async def wait(frame: QuestionFrame) -> dict[str, Any]:
        frames.append(frame)
        asked.set()
        await answer.wait()
        return await red(frame)

    async with MCPWebSocketClient(daemon.address().url, on_question=wait) as client:
        calling = asyncio.create_task(client.call("paint"))
        await asked.wait()
        connection = client._link.connection
        assert connection is not None
        await connection._socket.close()
        answer.set()
        assert (await calling).text == "red"
    assert len(frames) == 1


async def test_answers_need_the_session_the_call_and_the_question(daemon: Daemon, join: Any) -> None:
    """Other answers are refused, and so is a second one."""
    features = ["questions"]
    ada, eve = await join(daemon, features=features), await join(daemon, features=features)
    await ada.send("call_tool", request_id="1", name="paint", answers=["form", "unknown", 7])
    asked = await ada.receive()
    assert (asked["op"], asked["request_id"]) == ("question", "1")
    fields = {"question_id": asked["question_id"], "result": {"action": "decline"}}
    for peer, wrong in ((eve, {"request_id": "1"}), (ada, {"request_id": "2"}), (ada, {"request_id": 1})):
        await peer.send("answer_question", **fields, **wrong)
        refused = await peer.receive()
        assert (refused["op"], refused["error"]["code"]) == ("error", "NOT_FOUND")
    await ada.send("answer_question", **fields, request_id="1")
    await ada.send("answer_question", **fields, request_id="1")
    frames = [await ada.receive(), await ada.receive()]
    assert {frame["op"] for frame in frames} == {"call_tool_res", "error"}
    assert next(frame for frame in frames if frame["op"] == "call_tool_res")["outputs"][0]["text"] == "declined"


async def test_a_cancelled_call_closes_its_question(daemon: Daemon, join: Any) -> None:
    """The client gets a report of it, and the call's one answer."""
    peer = await join(daemon, features=["questions"])
    await peer.send("call_tool", request_id="1", name="paint", answers=["form"])
    asked = await peer.receive()
    await peer.send("cancel", request_id="1")
    frames = [await peer.receive(), await peer.receive()]
    assert {"op": "question_closed", "request_id": "1", "question_id": asked["question_id"]} in frames
    await until(lambda: len(daemon.router.questions) == 0)
