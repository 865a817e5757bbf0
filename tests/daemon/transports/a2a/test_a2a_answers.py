"""Answers of agents over A2A: messages without a task."""

import pytest
from tests.tools.agents.hosted import calls, script

from .conftest import A2APort, events_of, message

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_an_agent_can_answer_by_messages(port: A2APort) -> None:
    """Its answer to a client that waits is a message without a task, the same for a repeat, in both versions and in a
    stream; a client that does not wait gets the task.
    """
    params = {"message": message(script("in short"), "b-1", contextId="b")}
    answer = (await port.client.rpc("brief", "SendMessage", params))["result"]
    sent = answer["message"]
    assert (sent["role"], sent["contextId"], "taskId" in sent) == ("ROLE_AGENT", "b", False)
    assert sent["parts"] == [{"text": "in short", "mediaType": "text/plain"}]
    assert (await port.client.rpc("brief", "SendMessage", params))["result"] == answer
    async with port.client.stream("brief", "SendStreamingMessage", params) as stream:
        assert [body for _, body in await events_of(stream)] == [answer]
    params = {"message": message("[[sim:delay=0.2]]" + script("streamed"), "b-2")}
    async with port.client.stream("brief", "SendStreamingMessage", params) as stream:
        ((_, body),) = await events_of(stream)
    assert body["message"]["parts"][0]["text"]
    old = {"messageId": "b-3", "role": "user", "parts": [{"kind": "text", "text": script("old")}]}
    in_0_3 = (await port.client.rpc("brief", "message/send", {"message": old}, "0.3"))["result"]
    assert (in_0_3["kind"], in_0_3["role"], in_0_3["parts"]) == ("message", "agent", [{"kind": "text", "text": "old"}])
    task = await port.client.ask("brief", message(script("later"), "b-4"), at_once=True)
    assert task["status"]["state"]


async def test_a_run_that_needs_its_client_is_a_task(port: A2APort) -> None:
    """What an agent with messages asks comes with its task, by which the client answers."""
    turns = script(calls(("ask_user", {"question": "Which?"})), "that one")
    async with port.client.stream("brief", "SendStreamingMessage", {"message": message(turns, "b-ask")}) as stream:
        ((_, body),) = await events_of(stream)
    assert body["task"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    decided = {"message": message("This.", "b-this", taskId=body["task"]["id"])}
    answer = (await port.client.rpc("brief", "SendMessage", decided))["result"]
    assert answer["message"]["parts"][0]["text"] == "that one"
