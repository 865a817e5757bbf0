"""A2A by JSON-RPC: messages become tasks, which are detached calls of hosted agents."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.tools.agents.hosted import calls, script
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.dispatch import RunningCall
from toold.daemon.persistence.a2a_task_records import A2ATaskRecords
from toold.daemon.persistence.store_journal import StoreJournal
from toold.protocol.error_codes import ServiceUnavailableError
from toold.protocol.tool_call import LOCAL
from toold.providers.simulator import Simulator
from toold.store import A2ATaskRow
from toold.store.sqlite.sqlite_reader import SqliteReader
from toold.store.store_port import Queries

from .conftest import SETTINGS, A2APort, environment, message, served

pytestmark = pytest.mark.asyncio(loop_scope="module")


def state(task: dict[str, Any]) -> str:
    return str(task["status"]["state"]).removeprefix("TASK_STATE_")


def text_of(task: dict[str, Any]) -> str:
    return str(task["artifacts"][0]["parts"][0]["text"])


async def test_a_message_is_answered_by_a_task_that_has_ended(port: A2APort) -> None:
    """A blocking message returns the completed task with the answer, the context and the message."""
    task = await port.client.ask("helper", message(script("hello back"), "m-blocking"))
    assert (state(task), text_of(task)) == ("COMPLETED", "hello back")
    assert [sent["messageId"] for sent in task["history"]] == ["m-blocking"]
    assert task["contextId"]
    again = await port.client.rpc("helper", "GetTask", {"id": task["id"], "historyLength": 0})
    assert again["result"] == {name: value for name, value in task.items() if name != "history"}


async def test_a_message_forces_no_commit_by_reading(port: A2APort, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new message that waits for its task makes no read that first commits what is queued."""
    reads: list[str] = []
    query_flushed = SqliteReader.query_flushed

    async def counted(reader: SqliteReader, query: Callable[[Queries], object]) -> object:
        reads.append(query.__qualname__.partition(".<")[0])
        return await query_flushed(reader, query)

    monkeypatch.setattr(SqliteReader, "query_flushed", counted)
    task = await port.client.ask("helper", message(script("cheap"), "m-reads"))
    assert (state(task), text_of(task)) == ("COMPLETED", "cheap")
    stores = ("A2ATaskStore.", "ConversationStore.", "SessionStore.", "CallJournal.find_detached")
    own = [read for read in reads if read.startswith(stores)]  # the daemon itself looks now and then
    assert own == []


async def test_a_task_is_a_detached_call_with_the_same_id(port: A2APort) -> None:
    """The task's id is that of the call, whose result its principal reads on any transport."""
    task = await port.client.ask("helper", message(script("seen"), "m-call"))
    info = await port.daemon.router.lookup.look_up(LOCAL, task["id"])
    assert info.result is not None
    assert "seen" in info.result.text


async def test_the_same_message_is_the_same_task(port: A2APort) -> None:
    """A repeat, also one at the same time, does not run the agent again; other content under its id is refused."""
    sent = message(script("once"), "m-repeated")
    before = len(port.simulator.log)
    first, second = await asyncio.gather(port.client.ask("helper", sent), port.client.ask("helper", sent))
    third = await port.client.ask("helper", sent)
    assert first["id"] == second["id"] == third["id"]
    assert len(port.simulator.log) == before + 1
    other = await port.client.rpc("helper", "SendMessage", {"message": message("else", "m-repeated")})
    assert other["error"]["code"] == -32602
    assert other["error"]["message"].startswith("message.messageId belongs to an earlier message")
    assert other["error"]["data"][1]["fieldViolations"][0]["field"] == "message.messageId"


@pytest.mark.parametrize("other", ["else", "long " * 10_000], ids=["short", "long"])
async def test_a_conflicting_message_takes_no_call_over(
    port: A2APort, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """It alone is refused; the request that waits for the first message of that id gets its task."""
    starting, release = asyncio.Event(), asyncio.Event()
    start_call = StoreJournal.start_call

    async def held(journal: StoreJournal, call: RunningCall, **options: Any) -> bool:
        if call.detached:
            starting.set()
            await release.wait()
        return await start_call(journal, call, **options)

    monkeypatch.setattr(StoreJournal, "start_call", held)
    message_id = f"m-conflict-{len(other)}"
    first = asyncio.create_task(port.client.ask("helper", message(script("kept"), message_id)))
    await starting.wait()
    refused = await port.client.rpc("helper", "SendMessage", {"message": message(other, message_id)})
    assert refused["error"]["code"] == -32602
    release.set()
    assert text_of(await first) == "kept"


async def test_a_context_is_a_conversation(port: A2APort) -> None:
    """A later message of a context, generated or the client's own, reaches a model that sees the earlier ones."""
    for own in ({}, {"contextId": "of-the-client"}):
        first = await port.client.ask("helper", message(script("blue"), f"c1-{own}", **own))
        context = first["contextId"]
        assert context == own.get("contextId", context)
        second = await port.client.ask("helper", message(script("ok"), f"c2-{own}", contextId=context))
        assert second["contextId"] == context
        assert second["id"] != first["id"]
        assert any("blue" in str(turn["content"]) for turn in port.simulator.log[-1].body["messages"])


async def test_a_message_that_does_not_wait(port: A2APort) -> None:
    """``returnImmediately`` returns a working task, which can be cancelled once."""
    task = await port.client.ask("helper", message("[[sim:delay=30]]", "m-slow"), at_once=True)
    assert state(task) == "WORKING"
    cancelled = await port.client.rpc("helper", "CancelTask", {"id": task["id"]})
    assert state(cancelled["result"]) == "CANCELED"
    again = await port.client.rpc("helper", "CancelTask", {"id": task["id"]})
    assert again["error"]["code"] == -32002
    assert again["error"]["data"][0]["reason"] == "TASK_NOT_CANCELABLE"


async def test_a_structured_answer_is_data(port: A2APort) -> None:
    """The artifact of an agent with ``answer_schema`` has a data part."""
    task = await port.client.ask("extractor", message(script('{"city": "Oslo"}'), "m-data"))
    assert task["artifacts"][0]["parts"] == [{"data": {"city": "Oslo"}, "mediaType": "application/json"}]


async def test_a_paused_run_requires_input(port: A2APort) -> None:
    """A question and an approval are answered by messages to the task; a remark approves nothing."""
    turns = script(calls(("ask_user", {"question": "Which?"})), calls(("echo", {"value": "blue"})), "written")
    task = await port.client.ask("careful", message(turns, "m-paused"))
    assert state(task) == "INPUT_REQUIRED"
    assert "Which?" in task["status"]["message"]["parts"][0]["text"]
    answer = message("The blue one.", "m-answer", taskId=task["id"])
    task = await port.client.ask("careful", answer)
    assert state(task) == "INPUT_REQUIRED"
    assert task["status"]["message"]["parts"][1]["data"]["wants"][0]["tool"] == "echo"
    assert (await port.client.ask("careful", answer))["status"]["state"] == task["status"]["state"]
    remark = {"message": message("Well, if you think so", "m-remark", taskId=task["id"])}
    refused = await port.client.rpc("careful", "SendMessage", remark)
    assert (refused["error"]["code"], "reject: REASON" in refused["error"]["message"]) == (-32602, True)
    task = await port.client.ask("careful", message("approve", "m-approve", taskId=task["id"]))
    assert (state(task), text_of(task)) == ("COMPLETED", "written")
    assert [sent["role"] for sent in task["history"]] == [
        *("ROLE_USER", "ROLE_AGENT", "ROLE_USER", "ROLE_AGENT", "ROLE_USER")
    ]


async def test_decisions_as_data(port: A2APort) -> None:
    """Several requests are decided by one data part, by their ids."""
    turns = script(calls(("echo", {"value": 1}), ("echo", {"value": 2})), "done")
    task = await port.client.ask("careful", message(turns, "m-two"))
    decisions = {"t1.0": {"decision": "approve", "arguments": {"value": 9}}, "t1.1": {"decision": "reject"}}
    sent = {**message("", "m-two-decided", taskId=task["id"]), "parts": [{"data": {"decisions": decisions}}]}
    assert state(await port.client.ask("careful", sent)) == "COMPLETED"
    read = json.dumps(port.simulator.log[-1].body["messages"])
    assert "9" in read
    assert "rejected" in read


async def test_an_ended_task_takes_no_message(port: A2APort) -> None:
    """The error names the state, and how to continue in the context."""
    task = await port.client.ask("helper", message(script("x"), "m-ended"))
    refused = await port.client.rpc("helper", "SendMessage", {"message": message("more", "m-more", taskId=task["id"])})
    assert refused["error"]["code"] == -32004
    wrong = message("more", "m-other", taskId=task["id"], contextId="another")
    assert (await port.client.rpc("helper", "SendMessage", {"message": wrong}))["error"]["code"] == -32602


async def test_a_failed_run_is_a_failed_task(port: A2APort) -> None:
    """The task's message has the error's code and text."""
    task = await port.client.ask("extractor", message(script(*["no"] * 3), "m-failed"))
    assert state(task) == "FAILED"
    assert task["status"]["message"]["parts"][1]["data"]["code"] == "PROVIDER_ERROR"


async def test_tasks_and_agents_of_others_are_not_there(port: A2APort) -> None:
    """Another principal gets the same words for a task as for one that does not exist, and 404 for agents beyond its
    toolset.
    """
    task = await port.client.ask("helper", message(script("mine"), "m-mine"))
    theirs = await port.guest.rpc("helper", "GetTask", {"id": task["id"]})
    absent = await port.guest.rpc("helper", "GetTask", {"id": "no-such-task"})
    assert theirs["error"]["code"] == absent["error"]["code"] == -32001
    assert theirs["error"]["message"].replace(task["id"], "") == absent["error"]["message"].replace("no-such-task", "")
    assert (await port.client.rpc("careful", "GetTask", {"id": task["id"]}))["error"]["code"] == -32001
    listed = (await port.guest.get("/agents")).json()
    assert [card["name"] for card in listed["agents"]] == ["helper"]
    hidden = await port.guest.post("careful", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}})
    unknown = await port.guest.post("nobody", {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}})
    assert hidden.status_code == unknown.status_code == 404
    own = await port.guest.ask("helper", message(script("own"), "m-mine"))
    assert own["id"] != task["id"]


async def test_version_0_3(port: A2APort) -> None:
    """Without a version, requests and answers have the methods and forms of 0.3."""
    sent = {"kind": "message", "messageId": "old-1", "role": "user", "parts": [{"kind": "text", "text": script("old")}]}
    answer = await port.client.rpc("helper", "message/send", {"message": sent}, version="")
    task = answer["result"]
    assert (task["kind"], task["status"]["state"]) == ("task", "completed")
    assert task["artifacts"][0]["parts"] == [{"kind": "text", "text": "old"}]
    assert task["history"][0]["role"] == "user"
    again = await port.client.rpc("helper", "tasks/get", {"id": task["id"]}, version="0.3")
    assert again["result"]["id"] == task["id"]
    slow = {**sent, "messageId": "old-2", "parts": [{"kind": "text", "text": "[[sim:delay=30]]"}]}
    params = {"message": slow, "configuration": {"blocking": False}}
    working = (await port.client.rpc("helper", "message/send", params, version="0.3"))["result"]
    assert working["status"]["state"] == "working"
    ended = await port.client.rpc("helper", "tasks/cancel", {"id": working["id"]}, version="0.3")
    assert ended["result"]["status"]["state"] == "canceled"


FILE = {"raw": "//79", "mediaType": "application/pdf"}


@pytest.mark.parametrize(
    ("method", "params", "version", "code", "words"),
    [
        ("SendMessage", {}, "1.0", -32602, "message"),
        ("SendMessage", {"message": {**message("x", ""), "parts": []}}, "1.0", -32602, "messageId"),
        ("SendMessage", {"message": {**message("x", "a"), "parts": []}}, "1.0", -32602, "parts"),
        ("SendMessage", {"message": {**message("x", "a"), "parts": [{"texts": "x"}]}}, "1.0", -32602, "parts[0]"),
        ("SendMessage", {"message": {**message("x", "a"), "parts": [FILE]}}, "1.0", -32005, "file"),
        ("SendMessage", {"message": {**message("x", "a"), "role": "ROLE_AGENT"}}, "1.0", -32602, "role"),
        ("SendMessage", {"message": message("x", "a", taskId="none")}, "1.0", -32001, "no task"),
        ("SendMessage", {"message": message("", "a")}, "1.0", -32602, "prompt"),
        ("GetTask", {"id": "x", "historyLength": -1}, "1.0", -32602, "historyLength"),
        ("GetTask", {}, "1.0", -32602, "id"),
        ("GetTask", {"id": "x"}, "9.9", -32009, "1.0 and 0.3"),
        ("tasks/get", {"id": "x"}, "1.0", -32601, "A2A-Version: 0.3"),
        ("SendMessage", {"message": message("x", "a")}, "", -32601, "A2A-Version: 1.0"),
        ("Dance", {}, "1.0", -32601, "SendMessage"),
        ("ListTasks", {"pageSize": 0}, "1.0", -32602, "pageSize"),
        ("ListTasks", {"pageToken": "x"}, "1.0", -32602, "pageToken"),
        ("ListTasks", {"status": "DONE"}, "1.0", -32602, "TASK_STATE_WORKING"),
        ("ListTasks", {}, "0.3", -32601, "A2A-Version: 1.0"),
        ("GetExtendedAgentCard", {}, "1.0", -32004, "card"),
        ("CreateTaskPushNotificationConfig", {}, "1.0", -32003, "push"),
        ("message/send", {"message": {"parts": [{"kind": "sound"}]}}, "0.3", -32602, "kind"),
    ],
)
async def test_bad_requests(
    port: A2APort, method: str, params: dict[str, Any], version: str, code: int, words: str
) -> None:
    """Each has the specification's code, and a message that says what is wrong."""
    error = (await port.client.rpc("helper", method, params, version))["error"]
    assert error["code"] == code
    assert words in error["message"]


async def test_proto_names_are_read(port: A2APort) -> None:
    """Fields may have the names of the specification's proto file."""
    sent = {"message_id": "snake", "role": "ROLE_USER", "parts": [{"text": script("hiss")}], "context_id": "s"}
    answer = await port.client.rpc("helper", "SendMessage", {"message": sent, "configuration": {"history_length": 0}})
    task = answer["result"]["task"]
    assert (task["contextId"], "history" in task) == ("s", False)


async def test_what_is_no_request(port: A2APort) -> None:
    """Bodies without a JSON-RPC request, and wrong methods and paths, are refused before any agent is looked up."""
    batch = await port.client.post("helper", [{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {}}])
    assert batch.json()["error"]["code"] == -32600
    headers = {"authorization": f"Bearer {port.client.token}"}
    garbage = await port.client.http.post(
        "/agents/helper/", content=b"{", headers={**headers, "content-type": "application/json"}
    )
    assert garbage.json()["error"]["code"] == -32700
    text = await port.client.http.post("/agents/helper/", content=b"x", headers=headers)
    error = text.json()["error"]
    assert (text.status_code, error["code"]) == (415, -32005)
    assert error["data"][0]["reason"] == "CONTENT_TYPE_NOT_SUPPORTED"
    assert (await port.client.http.get("/agents/helper/", headers=headers)).status_code == 405
    assert (await port.client.get("/agents/helper/elsewhere")).status_code == 404
    assert (await port.client.http.post("/agents/helper/", json={})).status_code == 401


async def test_cards_of_both_versions(port: A2APort) -> None:
    """Each version has its own card, at its well-known paths; clients ask again with the card's tag."""
    base = f"http://127.0.0.1:{port.daemon.http.port}/agents/helper"
    new = await port.client.get("/agents/helper/.well-known/agent-card.json")
    assert new.json()["supportedInterfaces"][0] == {
        "url": f"{base}/",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    assert "url" not in new.json()
    for path in (".well-known/agent.json", "v0.3/.well-known/agent-card.json"):
        old = (await port.client.get(f"/agents/helper/{path}")).json()
        assert (old["protocolVersion"], old["url"], old["preferredTransport"]) == ("0.3.0", f"{base}/", "JSONRPC")
        assert "supportedInterfaces" not in old
    headers = {"if-none-match": new.headers["etag"]}
    assert (await port.client.get("/agents/helper/.well-known/agent-card.json", **headers)).status_code == 304


async def test_the_default_agent(port: A2APort) -> None:
    """The paths without a name are those of the one agent that the caller sees; with several, there is none."""
    card = await port.guest.get("/.well-known/agent-card.json")
    assert card.json()["name"] == "helper"
    body = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}
    headers = {"authorization": f"Bearer {port.guest.token}", "A2A-Version": "1.0"}
    assert (await port.client.http.post("/", json=body, headers=headers)).json()["error"]["code"] == -32001
    assert (await port.client.get("/.well-known/agent-card.json")).status_code == 404


async def test_tasks_survive_a_restart(tmp_path: Path) -> None:
    """After a restart, a running task continues and ends, and a paused one still takes its answer; the repeat of
    a message waits for its task.
    """
    (tmp_path / "toold.toml").write_text(SETTINGS)
    slow = message("[[sim:delay=0.3]]", "m-restart")
    question = message(script(calls(("ask_user", {"question": "Which?"})), "that one"), "m-question")
    async with Simulator() as simulator:
        env = environment(tmp_path, simulator) | {"TOOLD_GRACE_PERIOD_S": "5"}
        settings = load_settings({}, env=env, cwd=tmp_path)
        async with served(settings) as (_, client):
            working = await client.ask("helper", slow, at_once=True)
            paused = await client.ask("careful", question)
            assert (state(working), state(paused)) == ("WORKING", "INPUT_REQUIRED")
        async with served(settings) as (_, client):
            ended = await client.ask("helper", slow)
            assert (ended["id"], state(ended)) == (working["id"], "COMPLETED")
            decided = await client.ask("careful", message("This.", "m-which", taskId=paused["id"]))
            assert (state(decided), text_of(decided)) == ("COMPLETED", "that one")


async def test_a_crash_loses_neither_the_begin_nor_the_end_of_a_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the daemon dies after the start of a call was stored, and before anyone got its id, the repeat of the message
    returns its task, and the agent runs once; if it dies before the last event of a task was stored, the next start
    stores that event.
    """
    (tmp_path / "toold.toml").write_text(SETTINGS)
    sent = message("[[sim:delay=0.3]]", "m-crash")
    async with Simulator() as simulator:
        env = environment(tmp_path, simulator) | {"TOOLD_GRACE_PERIOD_S": "5"}
        settings = load_settings({}, env=env, cwd=tmp_path)
        begun: list[str] = []
        start_call, save = StoreJournal.start_call, A2ATaskRecords.save

        async def dies_after(journal: StoreJournal, call: RunningCall, **options: Any) -> bool:
            stored = await start_call(journal, call, **options)
            if call.detached and call.request.request_id == "m-crash":
                begun.append(call.id)
                raise ServiceUnavailableError("The daemon dies.")
            return stored

        async def dies_before(records: A2ATaskRecords, row: A2ATaskRow, *, soon: bool = True) -> None:
            if row.ended:
                await asyncio.Event().wait()
            await save(records, row, soon=soon)

        with monkeypatch.context() as patch:
            patch.setattr(StoreJournal, "start_call", dies_after)
            patch.setattr(A2ATaskRecords, "save", dies_before)
            async with served(settings) as (_, client):
                assert "error" in await client.rpc("helper", "SendMessage", {"message": sent})
                ended = await client.ask("helper", message(script("kept"), "m-end"))
                assert state(ended) == "COMPLETED"
        async with served(settings) as (daemon, client):
            task = await client.ask("helper", sent)
            assert ([task["id"]], state(task)) == (begun, "COMPLETED")
            assert [row["messageId"] for row in task["history"]] == ["m-crash"]
            events = await daemon.store.a2a_tasks.events(ended["id"], 0)
            assert b"TASK_STATE_COMPLETED" in events[-1].body
            rows = [row["outcome"] for row in await daemon.view.ended(LOCAL, 10) if row["tool"] == "helper"]
            assert sorted(rows) == ["SERVICE_UNAVAILABLE", "ok", "ok"]  # the refused one is how this test crashes
            other = await client.rpc("helper", "SendMessage", {"message": message("else", "m-crash")})
            assert other["error"]["code"] == -32602
