"""A2A's streams, lists of tasks, and HTTP+JSON."""

from pathlib import Path
from typing import Any

import pytest
from tests.tools.agents.hosted import calls, script
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.transports.a2a import a2a_tasks
from toold.providers.simulator import Simulator

from .conftest import SETTINGS, A2APort, Events, environment, events_of, message, served

pytestmark = pytest.mark.asyncio(loop_scope="module")

SLOW = "[[sim:delay=30]]"


def states(events: Events) -> list[str]:
    found = [body["statusUpdate"] for _, body in events if "statusUpdate" in body]
    return [update["status"]["state"].removeprefix("TASK_STATE_") for update in found]


async def test_a_message_is_streamed(port: A2APort) -> None:
    """The stream begins with the task, has the pieces of the answer and then the whole, and ends with the task."""
    text = "A long answer, " * 40
    async with port.client.stream(
        "helper", "SendStreamingMessage", {"message": message(script(text), "s-1")}
    ) as answer:
        events = await events_of(answer)
    task = events[0][1]["task"]
    assert states(events) == ["COMPLETED"]
    whole = [body["artifactUpdate"] for _, body in events if "artifactUpdate" in body][-1]
    assert (whole["append"], whole["lastChunk"], whole["artifact"]["parts"][0]["text"]) == (False, True, text)
    assert whole["taskId"] == task["id"]
    assert [number for number, _ in events] == sorted({number for number, _ in events})
    async with port.client.stream("helper", "SubscribeToTask", {"id": task["id"]}, **{"Last-Event-ID": "0"}) as answer:
        again = await events_of(answer)
    assert again == events[-2:]  # without the pieces, which the whole answer replaces


async def test_pieces_precede_the_answer(port: A2APort) -> None:
    """A client that subscribes while the model writes gets what it wrote so far, and then the rest in order."""
    params = {"message": message("[[sim:stream_delay=0.06]] Count.", "s-pieces")}
    async with port.client.stream("helper", "SendStreamingMessage", params) as answer:
        first = await events_of(answer, limit=2)
    task_id = first[0][1]["task"]["id"]
    assert first[1][1]["artifactUpdate"]["append"] is False
    async with port.client.stream("helper", "SubscribeToTask", {"id": task_id}) as answer:
        events = await events_of(answer)
    begun = events[0][1]["task"]["artifacts"][0]["parts"][0]["text"]
    pieces = [body["artifactUpdate"] for _, body in events if "artifactUpdate" in body]
    written = begun + "".join(piece["artifact"]["parts"][0]["text"] for piece in pieces[:-1])
    assert all(piece["append"] for piece in pieces[:-1])
    assert len(begun) < len(written)
    assert pieces[-1]["artifact"]["parts"][0]["text"].startswith(written)


async def test_a_stream_ends_where_the_client_is_needed(port: A2APort) -> None:
    """A stream ends with the state that needs its client; one that subscribes then sees how the task continues."""
    turns = script(calls(("ask_user", {"question": "Which?"})), "that one")
    async with port.client.stream("careful", "SendStreamingMessage", {"message": message(turns, "s-ask")}) as answer:
        events = await events_of(answer)
    task_id = events[0][1]["task"]["id"]
    assert states(events) in ([], ["INPUT_REQUIRED"])  # the task may wait before the stream begins
    async with port.client.stream("careful", "SubscribeToTask", {"id": task_id}) as answer:
        lines = answer.aiter_lines()
        while not (await anext(lines)).startswith("data: "):
            pass
        await port.client.ask("careful", message("This.", "s-this", taskId=task_id), at_once=True)
        rest = [line async for line in lines if line.startswith("data: ")]
    assert "TASK_STATE_WORKING" in rest[0]
    assert "TASK_STATE_COMPLETED" in rest[-1]
    ended = await port.client.rpc("careful", "SubscribeToTask", {"id": task_id})
    assert ended["error"]["code"] == -32004
    assert ended["error"]["message"].endswith("read it with GetTask.")
    async with port.client.stream("careful", "tasks/resubscribe", {"id": task_id}, "0.3") as answer:
        ((_, refused),) = await events_of(answer)
    assert refused["error"]["message"].endswith("read it with tasks/get.")


async def test_errors_of_streams_of_0_3_are_events(port: A2APort) -> None:
    """A stream that cannot begin has one event with the error: clients of 0.3 read nothing else."""
    for method, params, code in (
        ("tasks/resubscribe", {"id": "none"}, -32001),
        ("message/stream", {"message": {}}, -32602),
    ):
        async with port.client.stream("helper", method, params, "0.3") as answer:
            ((_, refused),) = await events_of(answer)
        assert (refused["id"], refused["error"]["code"]) == (1, code)


async def test_a_silent_stream_shows_that_it_is_alive(port: A2APort, monkeypatch: pytest.MonkeyPatch) -> None:
    """While nothing happens, comments are sent that do not end an event: no blank line follows them."""
    monkeypatch.setattr(a2a_tasks, "ALIVE_S", 0.05)
    params = {"message": message("[[sim:delay=0.4]]", "s-silent")}
    async with port.client.stream("helper", "SendStreamingMessage", params) as answer:
        text = (await answer.aread()).decode()
    assert "\n\n: the task is still working\n" in text
    assert "working\n\n" not in text


async def test_a_stream_of_0_3(port: A2APort) -> None:
    """The events have the kinds of 0.3, and the last one is final."""
    sent = {"messageId": "s-old", "role": "user", "parts": [{"kind": "text", "text": script("old")}]}
    async with port.client.stream("helper", "message/stream", {"message": sent}, "0.3") as answer:
        events = [body for _, body in await events_of(answer)]
    assert events[0]["kind"] == "task"
    assert (events[-1]["kind"], events[-1]["final"]) == ("status-update", True)
    assert events[-2]["artifact"]["parts"] == [{"kind": "text", "text": "old"}]


async def test_subscribing_after_a_restart(tmp_path: Path) -> None:
    """A client that names its last event gets those that it missed while the daemon was down, each once."""
    (tmp_path / "toold.toml").write_text(SETTINGS)
    async with Simulator() as simulator:
        env = environment(tmp_path, simulator) | {"TOOLD_GRACE_PERIOD_S": "5"}
        settings = load_settings({}, env=env, cwd=tmp_path)
        async with served(settings) as (_, client):
            params = {"message": message("[[sim:delay=0.3]]", "s-restart")}
            async with client.stream("helper", "SendStreamingMessage", params) as answer:
                ((last, body),) = await events_of(answer, limit=1)
        async with served(settings) as (_, client):
            seen = {"Last-Event-ID": str(last)}
            async with client.stream("helper", "SubscribeToTask", {"id": body["task"]["id"]}, **seen) as answer:
                events = await events_of(answer)
    assert states(events) == ["COMPLETED"]
    assert events[0][0] == last + 1


async def test_tasks_are_listed_in_pages(port: A2APort) -> None:
    """A list has the tasks of the caller and agent, the latest change first, in pages that miss and repeat none."""
    ids = [(await port.client.ask("extractor", message(script('{"city": "A"}'), f"l-{n}")))["id"] for n in range(3)]
    listed: list[dict[str, Any]] = []
    token = ""
    while True:
        page = (await port.client.rpc("extractor", "ListTasks", {"pageSize": 2, "pageToken": token}))["result"]
        listed += page["tasks"]
        assert (page["pageSize"], page["totalSize"]) == (2, 3)
        token = page["nextPageToken"]
        if not token:
            break
    assert [task["id"] for task in listed] == ids[::-1]
    assert all("artifacts" not in task for task in listed)
    wanted = {"contextId": listed[0]["contextId"], "includeArtifacts": True, "status": "TASK_STATE_COMPLETED"}
    (found,) = (await port.client.rpc("extractor", "ListTasks", wanted))["result"]["tasks"]
    assert found["artifacts"][0]["parts"][0]["data"] == {"city": "A"}
    later = {"statusTimestampAfter": "2999-01-01T00:00:00Z"}
    assert (await port.client.rpc("extractor", "ListTasks", later))["result"]["totalSize"] == 0
    assert (await port.guest.rpc("helper", "ListTasks", {}))["result"]["tasks"] == []


async def test_http_and_json(port: A2APort) -> None:
    """The operations have paths, in the media type of the client; errors have a status and the form of HTTP+JSON."""
    headers = {"authorization": f"Bearer {port.client.token}", "A2A-Version": "1.0"}
    own = {**headers, "content-type": "application/a2a+json"}
    http, base = port.client.http, "/agents/helper"
    body = {"message": message(script("by path"), "r-1")}
    sent = await http.post(f"{base}/message:send", json=body, headers=own)
    assert sent.headers["content-type"] == "application/a2a+json"
    task = sent.json()["task"]
    read = await http.get(f"{base}/tasks/{task['id']}?historyLength=0", headers=headers)
    assert (read.headers["content-type"], "history" in read.json()) == ("application/json", False)
    listed = await http.get(f"{base}/tasks?pageSize=1&contextId={task['contextId']}", headers=headers)
    assert [each["id"] for each in listed.json()["tasks"]] == [task["id"]]
    body = {"message": message(SLOW, "r-2"), "configuration": {"returnImmediately": True}}
    slow = (await http.post(f"{base}/message:send", json=body, headers=headers)).json()["task"]
    cancelled = await http.post(f"{base}/tasks/{slow['id']}:cancel", headers=headers)
    assert cancelled.json()["status"]["state"] == "TASK_STATE_CANCELED"
    stream = {"message": message(script("streamed"), "r-3")}
    async with http.stream("POST", f"{base}/message:stream", json=stream, headers=headers) as answer:
        assert states(await events_of(answer)) in ([], ["COMPLETED"])
    absent = await http.get(f"{base}/tasks/none", headers=headers)
    assert (absent.status_code, absent.json()["error"]["status"]) == (404, "NOT_FOUND")
    assert absent.json()["error"]["details"][0]["reason"] == "TASK_NOT_FOUND"
    for path, status in (("tasks/x/pushNotificationConfigs", 400), ("extendedAgentCard", 400), ("tasks/x:dance", 404)):
        assert (await http.get(f"{base}/{path}", headers=headers)).status_code == status
    assert (await http.get(f"{base}/tasks/none?A2A-Version=0.3", headers=port_token(port))).status_code == 400
    broken = await http.post(f"{base}/message:send", content=b"{", headers=own)
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, 400)


def port_token(port: A2APort) -> dict[str, str]:
    return {"authorization": f"Bearer {port.client.token}"}
