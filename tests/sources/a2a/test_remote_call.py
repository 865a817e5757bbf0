"""Calls of an agent that answers oddly, breaks connections, or is slow; and calls over a restart of the daemon."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response, StreamingResponse
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import CallResult, MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import LOCAL
from toold.providers.simulator import Simulator
from toold.sources.a2a import remote_call
from toold.sources.a2a.remote_call import MAX_FILES_BYTES, MAX_SUBSCRIPTIONS

from .scripted_agent import ScriptedAgent, events, old_task, scripted_agent, task

pytestmark = pytest.mark.asyncio(loop_scope="module")

SOURCE = '[sources.{name}]\ntype = "a2a"\nurl = "{url}/{name}"\nallow_private = true\n'
MORE = """
[sources.again]
type = "a2a"
url = "{url}/again"
allow_private = true
deduplicates = true

[sources.skilled]
type = "a2a"
url = "{url}/skilled"
allow_private = true
tools = "skills"
exclude = ["write"]

[sources.mine]
type = "a2a"
url = "{url}/mine"
allow_private = true
auth = {{ user = "shop", field = "token" }}

[sources.single]
type = "a2a"
url = "{url}/single"
allow_private = true
max_running = 1

[agents.boss]
description = "Calls a remote agent."
prompt = "Delegate."
tools = ["single", "plain", "again"]
"""
WORKING = task("WORKING")
DONE = task("COMPLETED", answer=[{"text": "Done."}])


@dataclass(frozen=True)
class Calling:
    """A daemon that calls a scripted agent."""

    agent: ScriptedAgent
    daemon: Daemon
    client: MCPWebSocketClient
    workspace: Path

    async def call(self, tool: str, **arguments: Any) -> CallResult:
        return await self.client.call(tool, {"prompt": "Do it.", **arguments})

    async def failure(self, tool: str, timeout_s: float | None = None) -> CallError:
        with pytest.raises(CallError) as failed:
            await self.client.call(tool, {"prompt": "Do it."}, timeout=timeout_s)
        return failed.value


@asynccontextmanager
async def daemon_at(directory: Path, simulator: Simulator) -> AsyncIterator[tuple[Daemon, MCPWebSocketClient]]:
    settings = load_settings({}, env=simulated_environment(directory / "state", simulator), cwd=directory)
    async with running(settings) as daemon:
        await daemon.sources.loaded()
        await daemon.publisher.published()
        async with MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            yield daemon, client


def configure(directory: Path, url: str) -> None:
    plain = "".join(SOURCE.format(name=name, url=url) for name in ("plain", "live", "rest", "old"))
    (directory / "toold.toml").write_text('workspace = ["."]\n' + plain + MORE.format(url=url))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def calling(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Calling]:
    directory = tmp_path_factory.mktemp("remote")
    async with Simulator() as simulator, scripted_agent() as agent:
        configure(directory, agent.url)
        async with daemon_at(directory, simulator) as (daemon, client):
            yield Calling(agent, daemon, client, directory)


async def test_an_agent_without_streams_is_polled(calling: Calling) -> None:
    """The message asks for an answer at once, and ``GetTask`` reads the rest."""
    calling.agent.reset(SendMessage={"task": WORKING}, GetTask=DONE)
    assert (await calling.call("plain")).structured["answer"] == "Done."
    method, params = calling.agent.received[0]
    assert (method, params["configuration"]["returnImmediately"]) == ("SendMessage", True)
    assert calling.agent.headers[0]["a2a-version"] == "1.0"


async def test_version_0_3_is_spoken(calling: Calling) -> None:
    """With its method names and parts."""
    calling.agent.reset(**{"message/send": old_task("working"), "tasks/get": old_task("completed", "Old.")})
    assert (await calling.call("old", data={"a": 1})).structured["answer"] == "Old."
    message = calling.agent.received[0][1]["message"]
    assert (message["kind"], message["role"]) == ("message", "user")
    assert [part["kind"] for part in message["parts"]] == ["text", "data"]


async def test_http_json_is_spoken(calling: Calling) -> None:
    """If the card offers nothing else; its errors have A2A's reasons."""
    calling.agent.reset(**{"message:send": {"task": WORKING}, "tasks/t1": DONE})
    assert (await calling.call("rest")).structured["answer"] == "Done."
    error = {"code": 400, "message": "no such field", "details": [{"reason": "INVALID_ARGUMENT"}]}
    calling.agent.reset(**{"message:send": JSONResponse({"error": error}, 400)})
    failed = await calling.failure("rest")
    assert (failed.code, failed.executed) == ("VALIDATION_ERROR", "no")


async def test_a_skill_is_named_in_the_message(calling: Calling) -> None:
    """Only selected skills are tools."""
    calling.agent.reset(SendMessage={"task": DONE})
    await calling.call("search")
    assert calling.agent.received[0][1]["message"]["metadata"] == {"skillId": "search"}
    assert "write" not in {tool.name for tool in await calling.client.list_tools()}


async def test_data_and_files_of_an_answer(calling: Calling) -> None:
    """One data part is the answer; a file is passed on, and a link is not followed."""
    calling.agent.reset(SendMessage={"message": {"messageId": "m", "parts": [{"data": {"n": 1}}]}})
    assert (await calling.call("plain")).structured["answer"] == {"n": 1}
    picture = {"raw": "AAAA", "mediaType": "image/png", "filename": "a.png"}
    link = {"url": "http://127.0.0.1:1/b.pdf", "filename": "b.pdf", "mediaType": "application/pdf"}
    calling.agent.reset(SendMessage={"task": task("COMPLETED", answer=[{"text": "See."}, picture, link])})
    answer = await calling.call("plain")
    assert [output["type"] for output in answer.outputs if output["type"] != "text"] == ["image", "resource_link"]
    assert answer.structured["answer"] == "See."


async def test_a_broken_stream_is_subscribed_to_again(calling: Calling) -> None:
    """The message is not sent again; if the agent opens no stream, its task is read."""

    async def broken(_: Any) -> Response:
        return events({"task": WORKING}, then_break=True)

    calling.agent.reset(SendStreamingMessage=broken, SubscribeToTask=events({"task": WORKING}, {"task": DONE}))
    assert (await calling.call("live")).structured["answer"] == "Done."
    assert calling.agent.methods() == ["SendStreamingMessage", "SubscribeToTask"]
    calling.agent.reset(SendStreamingMessage=broken, SubscribeToTask=Response(status_code=500), GetTask=DONE)
    assert (await calling.call("live")).structured["answer"] == "Done."
    assert calling.agent.methods() == ["SendStreamingMessage", "SubscribeToTask", "GetTask"]


async def test_streams_that_break_again_and_again_are_given_up(
    calling: Calling, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a few subscriptions, the task is read."""

    async def brief(_: Any) -> Response:
        return events({"task": WORKING})

    monkeypatch.setattr(remote_call, "FIRST_POLL_S", 0.01)
    calling.agent.reset(SendStreamingMessage=brief, SubscribeToTask=brief, GetTask=DONE)
    assert (await calling.call("live")).structured["answer"] == "Done."
    assert calling.agent.methods()[1:] == ["SubscribeToTask"] * MAX_SUBSCRIPTIONS + ["GetTask"]


async def test_the_credential_of_each_caller_is_sent(calling: Calling) -> None:
    """A source with ``auth = {user, field}`` sends what its caller has stored; the card is read without it."""
    calling.agent.reset(SendMessage={"task": task("COMPLETED", answer=[{"text": "Your key is secret-of-user."}])})
    assert (await calling.failure("mine")).code == "PERMISSION_DENIED"
    assert calling.agent.methods() == []
    await calling.daemon.credentials.put(LOCAL.name, "shop", {"token": "secret-of-user"})
    answer = await calling.call("mine")
    assert calling.agent.headers[0]["authorization"] == "Bearer secret-of-user"
    assert "secret-of-user" not in str(answer)
    calling.agent.reset(SendMessage=Response(status_code=401))
    assert "`toold credentials set shop token`" in (await calling.failure("mine")).message


async def test_a_lost_answer_is_an_unknown_outcome(calling: Calling) -> None:
    """Unless the agent deduplicates: then the same message is sent again."""
    calling.agent.reset(SendMessage=Response(status_code=502), SendStreamingMessage=events(then_break=True))
    assert (await calling.failure("plain")).code == "OUTCOME_UNKNOWN"
    assert (await calling.failure("live")).code == "OUTCOME_UNKNOWN"
    assert calling.agent.methods() == ["SendMessage", "SendStreamingMessage"]
    replies = iter([Response(status_code=502), {"task": DONE}])

    async def answer(_: Any) -> Any:
        return next(replies)

    calling.agent.reset(SendMessage=answer)
    assert (await calling.call("again")).structured["answer"] == "Done."
    first, second = (params["message"]["messageId"] for _, params in calling.agent.received)
    assert first == second


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (HTMLResponse("<html>"), "PROVIDER_ERROR", "it is HTML"),
        (Response(b""), "PROVIDER_ERROR", "it is empty"),
        (Response(b"[" * 100_000), "PROVIDER_ERROR", "cannot be read"),
        ({"task": task("DREAMING")}, "PROVIDER_ERROR", "unknown state 'TASK_STATE_DREAMING'"),
        ({"task": {**DONE, "artifacts": "x"}}, "PROVIDER_ERROR", "artifacts is not a list"),
        (RedirectResponse("http://10.0.0.1/"), "PROVIDER_ERROR", "redirects"),
        (JSONResponse({"a": 1}, 401), "PERMISSION_DENIED", "rejects the daemon's secret"),
        ({"task": task("AUTH_REQUIRED", text="Log in at X")}, "PERMISSION_DENIED", "Log in at X"),
        ({"task": task("FAILED", text="No paper")}, "TOOL_EXECUTION_ERROR", "No paper"),
        ({"task": task("REJECTED", text="Not mine")}, "PERMISSION_DENIED", "Not mine"),
        ({"task": task("CANCELED")}, "CANCELLED", "canceled its task t1"),
        ({"task": task("COMPLETED", answer=[{"text": "x" * 9_000_000}])}, "RESULT_TOO_LARGE", "bytes"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_odd_answers(sent: Any, code: str, message: str, calling: Calling) -> None:
    """Each is an error that says what is wrong."""
    calling.agent.reset(SendMessage=sent)
    failed = await calling.failure("plain")
    assert failed.code == code
    assert message in failed.message


async def test_calls_wait_for_their_turn(calling: Calling) -> None:
    """Of one source at most ``max_running`` at once."""
    free = asyncio.Event()
    begun = asyncio.Event()

    async def answer(_: Any) -> Any:
        begun.set()
        await free.wait()
        return {"task": DONE}

    calling.agent.reset(SendMessage=answer)
    calls = [asyncio.create_task(calling.call("single")) for _ in range(2)]
    await begun.wait()
    while (await calling.client.call("activity", {})).text.count("single") < 2:
        await asyncio.sleep(0.01)
    assert calling.agent.methods() == ["SendMessage"]
    free.set()
    assert [call.structured["answer"] for call in await asyncio.gather(*calls)] == ["Done.", "Done."]


async def test_files_go_with_the_message(calling: Calling) -> None:
    """As parts with their names; files outside of the workspace do not, nor too many bytes."""
    (calling.workspace / "a.txt").write_bytes(b"hi")
    (calling.workspace / "big").write_bytes(bytes(MAX_FILES_BYTES - 1))
    calling.agent.reset(SendMessage={"task": DONE})
    await calling.call("plain", files=["a.txt"])
    assert calling.agent.received[0][1]["message"]["parts"][1] == {"raw": "aGk=", "filename": "a.txt"}
    for files, code in ((["/etc/passwd"], "PERMISSION_DENIED"), (["a.txt", "big"], "VALIDATION_ERROR")):
        with pytest.raises(CallError) as failed:
            await calling.call("plain", files=files)
        assert failed.value.code == code
    assert calling.agent.methods() == ["SendMessage"]


async def test_an_agent_that_asks_without_end(calling: Calling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call takes so many questions, and fails at the next one."""
    monkeypatch.setattr(remote_call, "MAX_QUESTIONS", 1)
    asked = iter(("Which?", "Which else?"))
    state: dict[str, Any] = {}

    async def ask(_: Any) -> Any:
        state["task"] = task("INPUT_REQUIRED", text=next(asked))
        return state

    async def get(_: Any) -> Any:
        return state["task"]

    calling.agent.reset(SendMessage=ask, GetTask=get, CancelTask=task("CANCELED"))
    paused = (await calling.call("plain")).structured
    decision = {"id": "input-1", "decision": "answer", "text": "This."}
    await calling.client.call("agent_decide", {"call_id": paused["call_id"], "decisions": [decision]})
    while (ended := await calling.client.call("call_status", {"call_id": paused["call_id"]})).structured["state"] in {
        *("waiting", "running", "ending"),
    }:
        await asyncio.sleep(0.01)
    assert ended.structured["outcome"] == "TOOL_EXECUTION_ERROR"
    message = calling.agent.received[2][1]["message"]
    assert (message["taskId"], message["parts"]) == ("t1", [{"text": "This."}])


async def test_a_stream_that_never_ends(calling: Calling) -> None:
    """It ends with the call, whose error names the task, and the task is cancelled."""
    forever = asyncio.Event()
    cancelled = asyncio.Event()

    async def stream(_: Any) -> Any:
        async def sent() -> AsyncIterator[bytes]:
            yield b"data: " + json.dumps({"result": {"task": WORKING}}).encode() + b"\n\n"
            await forever.wait()

        return StreamingResponse(sent(), media_type="text/event-stream")

    async def cancel(_: Any) -> Any:
        cancelled.set()
        return task("CANCELED")

    calling.agent.reset(SendStreamingMessage=stream, CancelTask=cancel)
    failed = await calling.failure("live", timeout_s=1.0)
    assert failed.code == "TIMEOUT"
    await cancelled.wait()
    forever.set()


async def test_a_restart_continues_the_calls_of_an_agent(tmp_path: Path) -> None:
    """A known task is read again, and neither sent again nor cancelled. Where a message was being sent, the outcome is
    unknown, or an agent that deduplicates gets the same message again."""
    calls = [{"name": name, "arguments": {"prompt": name}} for name in ("single", "plain", "again")]
    turns = [{"calls": calls}, {"text": "Delegated."}]
    never, reading, sending = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def sent(params: Any) -> Any:
        if agent.methods().count("SendMessage") == len(calls):
            sending.set()
        if params["message"]["parts"][0]["text"] != "single":
            await never.wait()
        return {"task": WORKING}

    async def working(_: Any) -> Any:
        reading.set()
        return WORKING

    async with Simulator() as simulator, scripted_agent() as agent:
        configure(tmp_path, agent.url)
        agent.reset(SendMessage=sent, GetTask=working)
        async with daemon_at(tmp_path, simulator) as (_, client):
            begun = await client.call("boss", {"prompt": f"[[sim:script={json.dumps(turns)}]]", "detach": True})
            await sending.wait()
            await reading.wait()
        agent.answers.update(SendMessage={"task": DONE}, GetTask=DONE)
        async with daemon_at(tmp_path, simulator) as (_, client):
            result = await result_of(client, begun.structured["call_id"])
        never.set()
    assert (result["answer"], [call["outcome"] for call in result["calls"]]) == (
        "Delegated.",
        ["ok", "OUTCOME_UNKNOWN", "ok"],
    )
    messages = [params["message"] for method, params in agent.received if method == "SendMessage"]
    received = [(message["parts"][0]["text"], message["messageId"]) for message in messages]
    assert sorted(prompt for prompt, _ in received) == ["again", "again", "plain", "single"]
    assert len(set(received)) == 3
    assert "CancelTask" not in agent.methods()


async def result_of(client: MCPWebSocketClient, call_id: str) -> Any:
    while (await client.call("call_status", {"call_id": call_id})).structured["state"] != "done":
        await asyncio.sleep(0.01)
    return (await client.call("call_result", {"call_id": call_id})).structured["result"]
