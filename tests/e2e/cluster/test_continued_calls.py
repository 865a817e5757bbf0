"""What began at one node and continues at another one: tasks, paused calls, conversations and runs of agents."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from tests.e2e.cluster.conftest import Nodes, ended, open_client, written
from tests.e2e.conftest import Peer, Process
from tests.e2e.test_mcp import effect, task_request

LONG_LEASE: dict[str, Any] = {"TOOLD_LEASE_S": "60"}
AGENTS = {
    "scribe": 'description = "Writes after approval."\nprompt = "Write."\ntools = ["sim_effect"]\n'
    'approve = ["sim_effect"]\nask = true\n',
    "worker": 'description = "Writes."\nprompt = "Write."\ntools = ["sim_effect"]\n',
}
UNFINISHED = {"waiting", "running", "ending"}


@pytest.fixture
def agents(tmp_path: Path) -> dict[str, Any]:
    """The settings of nodes with agents."""
    directory = tmp_path / "agents"
    directory.mkdir()
    for name, text in AGENTS.items():
        (directory / f"{name}.toml").write_text(text)
    return {"TOOLD_AGENT_DIR": str(directory), **LONG_LEASE}


def writes(*texts: str, delay_ms: int = 0) -> dict[str, Any]:
    """A turn of a model that calls a tool with an effect."""
    return {"calls": [{"name": "sim_effect", "arguments": {"text": text, "delay_ms": delay_ms}} for text in texts]}


def script(*turns: dict[str, Any]) -> str:
    """A prompt after which the simulated model has these turns."""
    return f"Work. [[sim:script={json.dumps(turns)}]]"


async def until_written(node: Process, count: int) -> None:
    async with asyncio.timeout(60):
        while len(written(node)) < count:
            await asyncio.sleep(0.01)


async def kill(node: Process) -> None:
    node.process.kill()
    await ended(node)


async def look(peer: Peer, tool: str, call_id: str) -> dict[str, Any]:
    """What ``call_status`` or ``call_result`` says now."""
    answer = await peer.call(uuid4().hex, tool, call_id=call_id)
    assert answer["error"] is None, answer
    return dict(answer["structured"])


async def result_of(peer: Peer, call_id: str) -> dict[str, Any]:
    """The result of a detached call, once it has ended."""
    async with asyncio.timeout(60):
        while (await look(peer, "call_status", call_id))["state"] in UNFINISHED:
            await asyncio.sleep(0.05)
    return await look(peer, "call_result", call_id)


async def test_an_mcp_task_is_found_at_another_node(nodes: Nodes) -> None:
    """While its node lives, it is looked up there. After that, an ended task has its result, and one that ran has an
    unknown outcome.
    """
    first, second = await nodes.start("a", **LONG_LEASE), await nodes.start("b", **LONG_LEASE)
    done, cut = await effect(first, "done", 1500), await effect(first, "cut", 60_000)
    assert (await task_request(second, "tasks/get", cut, taskId=cut))["status"] == "working"
    async with asyncio.timeout(60):
        while (await task_request(second, "tasks/get", done, taskId=done))["status"] == "working":
            await asyncio.sleep(0.05)
    await kill(first)
    task = await task_request(second, "tasks/get", done, taskId=done)
    assert (task["status"], task["result"]["content"][0]["text"]) == ("completed", "written: done")
    task = await task_request(second, "tasks/get", cut, taskId=cut)
    assert (task["status"], task["result"]["structuredContent"]["code"]) == ("completed", "OUTCOME_UNKNOWN")
    assert sorted(written(first) + written(second)) == ["cut", "done"]


async def test_a_paused_call_continues_at_another_node(nodes: Nodes, agents: dict[str, Any]) -> None:
    """An agent asks for approval at a node that is killed; the decision at another one lets it continue there."""
    first, second = await nodes.start("a", **agents), await nodes.start("b", **agents)
    peer = await open_client(first)
    paused = (await peer.call("1", "scribe", prompt=script(writes("one", "two"), {"text": "Written."})))["structured"]
    assert paused["paused"]
    await kill(first)
    other = await open_client(second)
    status = await look(other, "call_status", paused["call_id"])
    assert (status["state"], status["requests"]) == ("paused", paused["requests"])
    decisions = [{"id": request["id"], "decision": "approve"} for request in paused["requests"]]
    decided = await other.call("1", "agent_decide", call_id=paused["call_id"], decisions=decisions)
    assert decided["error"] is None, decided
    result = await result_of(other, paused["call_id"])
    assert (result["state"], result["result"]["answer"]) == ("done", "Written.")
    assert (written(first), sorted(written(second))) == ([], ["one", "two"])


async def test_a_conversation_continues_at_another_node(nodes: Nodes) -> None:
    """Turns at both nodes in turn, then after one was killed during a turn, which the conversation does not have. The
    next turn does not wait until the lease of the killed node ends.
    """
    first, second = await nodes.start("a", **LONG_LEASE), await nodes.start("b", **LONG_LEASE)
    one, other = await open_client(first), await open_client(second)
    begun = await one.call("1", "chat", prompt="begins")
    conversation = begun["structured"]["continuation_id"]
    assert await earlier(other, conversation) == 2
    assert await earlier(one, conversation) == 4
    await one.send(
        op="call_tool",
        request_id="cut",
        name="chat",
        arguments={"prompt": "[[sim:delay=60]]", "continuation_id": conversation},
    )
    async with asyncio.timeout(60):
        while nodes.database.sql("SELECT count(*) FROM toold.conversation WHERE held_by IS NOT NULL") != "1":
            await asyncio.sleep(0.01)
    await kill(first)
    async with asyncio.timeout(50):  # the lease has 60 s
        assert await earlier(other, conversation) == 6


async def earlier(peer: Peer, conversation: str) -> int:
    """The number of messages that the model got before this one."""
    answer = await peer.call(uuid4().hex, "chat", prompt="continues", continuation_id=conversation)
    assert answer["error"] is None, answer
    found = re.search(r"(\d+) earlier messages", answer["outputs"][0]["text"])
    assert found is not None, answer
    return int(found[1])


async def test_a_run_of_an_agent_continues_at_another_node(nodes: Nodes, agents: dict[str, Any]) -> None:
    """A detached run whose node is killed between its turns: finished turns and their writes are not repeated."""
    first, second = await nodes.start("a", **agents), await nodes.start("b", **agents)
    peer = await open_client(first)
    turns = [writes(f"write {number}", delay_ms=200) for number in range(6)]
    answer = await peer.call("1", "worker", prompt=script(*turns, {"text": "Worked."}), detach=True)
    assert answer["error"] is None, answer
    call_id = answer["structured"]["call_id"]
    await until_written(first, 3)
    await kill(first)
    result = await result_of(await open_client(second), call_id)
    assert (result["state"], result["result"]["answer"]) == ("done", "Worked.")
    lines = [line.replace("_", " ") for line in texts(first) + texts(second)]
    assert lines == [f"write {number}" for number in range(6)]
    assert texts(second)


def texts(node: Process) -> list[str]:
    """The whole lines of the effect log."""
    log = node.state / "sim_effect.log"
    return log.read_text().splitlines() if log.exists() else []


# --- A2A -------------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a2a(node: Process, agent: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an agent."""
    headers = {"authorization": f"Bearer {node.token}", "A2A-Version": "1.0"}
    url = f"http://127.0.0.1:{node.http_port}/agents/{agent}/"
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
        yield http


async def rpc(http: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    answer = (await http.post("", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).json()
    assert "result" in answer, answer
    return dict(answer["result"])


async def send(http: httpx.AsyncClient, text: str, **fields: Any) -> dict[str, Any]:
    """The task of a message, at once."""
    message = {"messageId": uuid4().hex, "role": "ROLE_USER", "parts": [{"text": text}], **fields}
    answer = await rpc(http, "SendMessage", message=message, configuration={"returnImmediately": True})
    return dict(answer["task"])


async def ended_task(http: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    """The task, once it no longer works."""
    async with asyncio.timeout(60):
        while (task := await rpc(http, "GetTask", id=task_id))["status"]["state"] in {
            "TASK_STATE_SUBMITTED",
            "TASK_STATE_WORKING",
        }:
            await asyncio.sleep(0.05)
    return task


async def states_until_completed(nodes: Nodes, task_id: str) -> list[str]:
    """The states of a task in its events, in order, once the last one is stored: clients get the end before."""
    async with asyncio.timeout(60):
        while "COMPLETED" not in (found := states(nodes, task_id)):
            await asyncio.sleep(0.05)
    return found


def states(nodes: Nodes, task_id: str) -> list[str]:
    """The states of a task in its stored events, in order."""
    events = nodes.database.sql("SELECT convert_from(event, 'UTF8') FROM toold.a2a_event ORDER BY number").splitlines()
    updates = [json.loads(event)["statusUpdate"] for event in events if "statusUpdate" in event]
    return [update["status"]["state"].removeprefix("TASK_STATE_") for update in updates if update["taskId"] == task_id]


async def test_an_a2a_task_continues_at_another_node(nodes: Nodes, agents: dict[str, Any]) -> None:
    """Two nodes are left when the one of the task is killed. One continues the call; both report the task, whose end
    is stored once.
    """
    first, second, third = [await nodes.start(name, **agents) for name in "abc"]
    turns = [writes(f"write {number}", delay_ms=200) for number in range(4)]
    async with a2a(first, "worker") as http:
        task = await send(http, script(*turns, {"text": "Worked."}))
    await until_written(first, 2)
    await kill(first)
    async with a2a(second, "worker") as one, a2a(third, "worker") as other:
        found = await asyncio.gather(ended_task(one, task["id"]), ended_task(other, task["id"]))
        for each in found:
            assert each["status"]["state"] == "TASK_STATE_COMPLETED"
            assert each["artifacts"][0]["parts"][0]["text"] == "Worked."
    assert (await states_until_completed(nodes, task["id"])).count("COMPLETED") == 1
    assert texts(first) + texts(second) + texts(third) == [f"write {number}" for number in range(4)]


async def test_a_paused_a2a_task_is_answered_at_another_node(nodes: Nodes, agents: dict[str, Any]) -> None:
    """While the node that paused it lives, too: its end is stored once, and both nodes report it."""
    first, second = await nodes.start("a", **agents), await nodes.start("b", **agents)
    async with a2a(first, "scribe") as http, a2a(second, "scribe") as other:
        task = await send(http, script(writes("one"), {"text": "Written."}))
        task = await ended_task(http, task["id"])
        assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
        await send(other, "approve", taskId=task["id"])
        for client in (other, http):
            found = await ended_task(client, task["id"])
            assert found["status"]["state"] == "TASK_STATE_COMPLETED"
            assert found["artifacts"][0]["parts"][0]["text"] == "Written."
        assert len(found["history"]) == 3
    kinds = await states_until_completed(nodes, task["id"])
    assert (kinds.count("INPUT_REQUIRED"), kinds.count("COMPLETED")) == (1, 1), kinds
    assert (written(first), written(second)) == ([], ["one"])
