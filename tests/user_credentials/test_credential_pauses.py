"""Runs of agents that wait for a credential of their user."""

import asyncio
from typing import Any

import pytest
from tests.tools.agents.hosted import calls, script
from toold.daemon.dispatch import paused_calls

from .credential_world import CREDENTIALS, Caller, World

pytestmark = pytest.mark.asyncio(loop_scope="module")

PROMPT = script(calls(("echo", {"value": "once"}), ("tracker_find", {"user": "bob"})), "done")


async def without_credential(caller: Caller) -> None:
    await caller.request("DELETE", f"{CREDENTIALS}/jira")


async def a2a_task(caller: Caller, message_id: str) -> dict[str, Any]:
    message = {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": PROMPT}]}
    return dict((await caller.a2a("SendMessage", {"message": message}))["result"]["task"])


async def until(caller: Caller, task_id: str, state: str) -> dict[str, Any]:
    while True:
        task = (await caller.a2a("GetTask", {"id": task_id}))["result"]
        if task["status"]["state"] == state:
            return dict(task)
        await asyncio.sleep(0.02)


async def test_a_run_goes_on_by_itself_once_the_credential_is_given(world: World) -> None:
    """Also after a restart; the credential of another principal does not continue it, and no call is made twice."""
    ann, bob = world.ann, world.bob
    await without_credential(ann)
    world.systems.seen.clear()
    paused = (await ann.call("clerk", prompt=PROMPT))["structuredContent"]
    (request,) = paused["requests"]
    assert (request["id"], request["kind"], request["tool"]) == ("t1.1:jira.api_key.1", "credential", "tracker_find")
    assert request["credential"] == {"service": "jira", "field": "api_key"}
    assert "`toold credentials set jira api_key`" in request["text"]
    await bob.give("jira", api_key="bob-key-0815")
    await world.restart()
    ann = world.ann
    assert (await ann.status(paused["call_id"]))["state"] == "paused"
    asked = len(world.simulator.log)
    await ann.give("jira", api_key="ann-key-4711")
    assert (await ann.result(paused["call_id"]))["answer"] == "done"
    assert world.systems.seen == [("/tracker", "Bearer ann-key-4711")]
    assert len(world.simulator.log) == asked + 1  # the first turn was not asked again


async def test_an_a2a_task_waits_with_auth_required(world: World) -> None:
    """Its message says where to give the credential; a message without one changes nothing, and then it resumes."""
    ann = world.ann
    await without_credential(ann)
    task = await a2a_task(ann, "auth-1")
    assert task["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert "toold credentials set jira api_key" in task["status"]["message"]["parts"][0]["text"]
    early = await ann.a2a("tasks/get", {"id": task["id"]}, "0.3")
    assert early["result"]["status"]["state"] == "auth-required"
    go_on = {"messageId": "auth-2", "role": "ROLE_USER", "taskId": task["id"], "parts": [{"text": "I gave it."}]}
    still = (await ann.a2a("SendMessage", {"message": go_on}))["result"]["task"]
    assert still["status"]["state"] == "TASK_STATE_AUTH_REQUIRED"
    assert "t1.1:jira.api_key.2" in still["status"]["message"]["parts"][0]["text"]
    await ann.give("jira", api_key="ann-key-4711")
    await until(ann, task["id"], "TASK_STATE_COMPLETED")


async def test_a_credential_that_is_stored_elsewhere_is_found(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run also resumes if another program stored the credential, without a request to the daemon."""
    ann = world.ann
    await without_credential(ann)
    monkeypatch.setattr(paused_calls, "_LONGEST_WAIT_S", 0.05)
    paused = (await ann.call("clerk", prompt=PROMPT))["structuredContent"]
    await world.daemon.credentials.put("token:ann", "jira", {"api_key": "ann-key-4711"})
    assert (await ann.result(paused["call_id"]))["answer"] == "done"


async def test_a_refused_credential_is_a_message_to_the_model(world: World) -> None:
    """The call is not made, and the run continues without it."""
    ann = world.ann
    await without_credential(ann)
    world.systems.seen.clear()
    paused = (await ann.call("clerk", prompt=PROMPT))["structuredContent"]
    (request,) = paused["requests"]
    wrong = await ann.call(
        "agent_decide", call_id=paused["call_id"], decisions=[{"id": request["id"], "decision": "approve"}]
    )
    assert "takes provided or reject, not approve" in wrong["content"][0]["text"]
    decision = {"id": request["id"], "decision": "reject", "text": "not today"}
    await ann.call("agent_decide", call_id=paused["call_id"], decisions=[decision])
    result = await ann.result(paused["call_id"])
    assert [call["outcome"] for call in result["calls"]] == ["ok", "NO_CREDENTIAL"]
    assert "not today" in world.simulator.log[-1].body["messages"][-1]["content"]
    assert world.systems.seen == []
