"""Frames as the clients of EX-AI send and read them, over real sockets."""

import asyncio
from typing import Any

import pytest
from toold.protocol.error_codes import ToolExecutionError


async def say(arguments: Any, context: Any) -> str:
    """Answers, or fails if it gets arguments."""
    if arguments.model_extra:
        raise ToolExecutionError("It broke.", executed="yes")
    return "said"


@pytest.mark.parametrize("features", [None, ["ack"]])
async def test_an_answer_says_whether_it_is_ok(serve: Any, join: Any, make_tool: Any, features: Any) -> None:
    """``ok`` is true for a result, false for an error of the tool and for a refused call."""
    peer = await join(await serve(make_tool("say", say)), features=features)
    answers = []
    calls: list[dict[str, Any]] = [{"name": "say"}, {"name": "say", "arguments": {"a": 1}}, {"name": "nothing"}]
    for number, call in enumerate(calls):
        await peer.send("call_tool", request_id=number, **call)
        answers.append((await peer.until_answered(number))[-1])
    assert [answer["ok"] for answer in answers] == [answer["error"] is None for answer in answers]
    assert [answer["ok"] for answer in answers] == [True, False, False]
    assert not any("result" in answer or "id" in answer for answer in answers)


async def test_the_shim_reads_results_and_errors(serve: Any, join: Any, make_tool: Any) -> None:
    """A caller that sends ``id`` gets the outputs as ``result``, and an error as a text in it."""
    peer = await join(await serve(make_tool("say", say)))
    await peer.send("list_tools", id="list_1")
    listing = await peer.receive()
    assert (listing["id"], listing["tools"][0]["name"]) == ("list_1", "say")
    await peer.send("ping", id=2)
    assert (await peer.receive())["id"] == 2
    for request_id, arguments in (("call_1", {}), ("call_2", {"a": 1})):
        await peer.send("call_tool", id=request_id, name="say", arguments=arguments)
        answer = await peer.receive()
        assert (answer["id"], answer["request_id"]) == (request_id, request_id)
        text = "Error TOOL_EXECUTION_ERROR: It broke." if arguments else "said"
        assert answer["result"] == [{"type": "text", "text": text}]
        assert "It broke." in str(answer["error"]) or answer["ok"]


async def test_the_shim_gets_the_answer_as_the_next_frame(serve: Any, join: Any, make_tool: Any) -> None:
    """No progress precedes the answer to a call with ``id`` of a plain client, which would read it as the answer."""
    done = asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        await done.wait()
        return "done"

    peer = await join(await serve(make_tool("wait", wait), TOOLD_PROGRESS_INTERVAL_S="0.05"))
    await peer.send("call_tool", id="former", name="wait")
    await peer.send("call_tool", request_id="plain", name="wait")
    reports = [await peer.receive() for _ in range(2)]
    assert {(frame["op"], frame["request_id"]) for frame in reports} == {("progress", "plain")}
    done.set()
    frames = [await peer.receive() for _ in range(2)]
    while {frame["op"] for frame in frames[-2:]} != {"call_tool_res"}:
        frames.append(await peer.receive())
    assert not any(frame["op"] == "progress" and frame["request_id"] == "former" for frame in frames)
