"""Files in messages to agents over A2A, and answers without a task."""

import base64
from typing import Any

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


PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
IMAGE: dict[str, Any] = {"raw": base64.b64encode(PNG).decode(), "filename": "a.png"}


async def test_files_reach_the_models(port: A2APort) -> None:
    """An image reaches the roles whose models see, also after a pause; text files are in the prompt."""
    text = {"raw": base64.b64encode(b"blue whales").decode(), "filename": "note.txt"}
    before = len(port.simulator.log)
    turns = script(calls(("ask_user", {"question": "Why?"})), "a whale")
    sent = {**message("", "f-1"), "parts": [{"text": "What is it?"}, IMAGE, text, {"text": turns}]}
    asked = await port.client.ask("painter", sent)
    task = await port.client.ask("painter", message("Because.", "f-because", taskId=asked["id"]))
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    first, again, pen = (request.body["messages"] for request in port.simulator.log[before:])
    eye = [row for row in first if row["role"] == "user"]
    assert again[: len(first)] == first
    words, image = eye[-1]["content"]
    assert all(said in words["text"] for said in ("What is it?", "[image a.png]", "blue whales"))
    assert image["image_url"]["url"] == IMAGE["raw"]  # in GLM's form
    assert isinstance(pen[-1]["content"], str)
    assert task["history"][0]["parts"] == sent["parts"]


async def test_an_image_that_no_model_sees_is_refused(port: A2APort) -> None:
    """The task is rejected and says which models do not accept it; an answer to a task takes no file at all."""
    task = await port.client.ask("helper", {**message("", "f-2"), "parts": [IMAGE]})
    assert task["status"]["state"] == "TASK_STATE_REJECTED"
    assert "does not accept images" in task["status"]["message"]["parts"][0]["text"]
    turns = script(calls(("ask_user", {"question": "Which?"})), "that one")
    asked = await port.client.ask("careful", message(turns, "f-3"))
    decided = {**message("", "f-4", taskId=asked["id"]), "parts": [IMAGE]}
    refused = await port.client.rpc("careful", "SendMessage", {"message": decided})
    assert (refused["error"]["code"], "no files" in refused["error"]["message"]) == (-32005, True)
