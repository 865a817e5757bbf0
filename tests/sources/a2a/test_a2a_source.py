"""One daemon calls the agents of another: messages, streams, conversations, pauses and cancellation."""

import asyncio
import json
from typing import Any

import pytest
from toold.protocol.error_codes import CallError

from .conftest import TwoDaemons

pytestmark = pytest.mark.asyncio(loop_scope="module")

WRITE = {"calls": [{"name": "echo", "arguments": {"text": "x"}}]}
ASK = f"Go. [[sim:script={json.dumps([WRITE, {'text': 'Done.'}])}]]"


async def decide(two: TwoDaemons, paused: Any, text: str) -> Any:
    """Answers the one question of a paused call, and returns the call's result."""
    call_id, (request,) = paused["call_id"], paused["requests"]
    decision = {"id": request["id"], "decision": "answer", "text": text}
    await two.call("agent_decide", call_id=call_id, decisions=[decision])
    return await ended(two, call_id)


async def ended(two: TwoDaemons, call_id: str) -> Any:
    """The result of a detached call, once it has ended or paused."""
    while (await two.call("call_status", call_id=call_id)).structured["state"] in {"waiting", "running", "ending"}:
        await asyncio.sleep(0.01)
    return (await two.call("call_result", call_id=call_id)).structured["result"]


async def test_an_agent_of_another_daemon_is_a_tool(two: TwoDaemons) -> None:
    """Its answer is streamed, and its next call with the same continuation_id continues the agent's context."""
    pieces: list[str] = []
    answer = await two.client.call("far", {"prompt": "[[sim:say=The first.]]"}, on_chunk=pieces.append)
    assert "".join(pieces) == "Simulated: The first." == answer.structured["answer"]
    later = await two.call("far", prompt="Say more.", continuation_id=answer.structured["continuation_id"])
    assert "2 earlier messages" in later.text
    other = await two.call("far", prompt="Say more.")
    assert "earlier messages" not in other.text
    assert [(state.name, state.type, state.state, state.tools) for state in two.caller.sources.states] == [
        ("far", "a2a", "ready", 1),
        ("wary", "a2a", "ready", 1),
    ]


async def test_a_question_pauses_the_call(two: TwoDaemons) -> None:
    """The answer goes to the agent as a message of the same task."""
    paused = (await two.call("wary", prompt=ASK)).structured
    assert "approve or reject the call echo" in paused["requests"][0]["text"]
    assert (await decide(two, paused, "approve"))["answer"] == "Done."


async def test_a_question_pauses_the_run_of_an_agent_here(two: TwoDaemons) -> None:
    """The run of the agent that called the remote agent pauses, and gets its answer afterwards."""
    turns = [{"calls": [{"name": "wary", "arguments": {"prompt": ASK}}]}, {"text": "Delegated."}]
    paused = (await two.call("boss", prompt=f"[[sim:script={json.dumps(turns)}]]")).structured
    assert paused["requests"][0]["id"].endswith("/input-1")
    result = await decide(two, paused, "reject: too expensive")
    assert (result["answer"], result["calls"][0]["outcome"]) == ("Delegated.", "ok")


async def test_a_part_of_a_pipeline_fails_with_the_question(two: TwoDaemons) -> None:
    """It cannot pause; its error has the question and the task's id."""
    steps = [{"id": "a", "tool_name": "wary", "args": {"prompt": ASK}}]
    report = (await two.call("execute_pipeline", steps=steps)).text
    assert "wary asks (task " in report
    assert "approve or reject the call echo" in report


async def test_the_error_of_another_daemon_is_passed_on(two: TwoDaemons) -> None:
    """With its code and message."""
    with pytest.raises(CallError, match="far: role main: GLM") as failed:
        await two.call("far", prompt="[[sim:status=400]]")
    assert failed.value.code == "PROVIDER_ERROR"


async def test_a_cancelled_call_cancels_the_task(two: TwoDaemons) -> None:
    """The agent stops working."""
    calling = asyncio.ensure_future(two.call("far", prompt="[[sim:delay=60]]"))
    while not (tasks := [call for call in two.peer.router.calls if call.tool.name == "helper" and call.detached]):
        await asyncio.sleep(0.01)
    calling.cancel()
    while tasks[0].end_reason is None:
        await asyncio.sleep(0.01)
    assert tasks[0].end_reason.value == "caller"
