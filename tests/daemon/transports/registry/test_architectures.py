"""Architectures: each pattern as a flow of hosted agents, and what ends it. And the search for an agent."""

import json
from typing import Any

import pytest
from tests.daemon.app_requests import call
from tests.simulated_daemon import TOKEN
from tests.waiting import until
from toold.sources import read_sources
from toold.tools.agents import turn_attempts
from toold.tools.orchestration import call_retry

from .conftest import RegistryPort

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def agent(port: RegistryPort, name: str, *answers: Any, **fields: Any) -> str:
    """An agent whose model gives these answers, in the order of its turns in one call; or fails."""
    prompt = f"Answer. [[sim:script={json.dumps(answers)}]]" if answers else "Repeat."
    roles = [{"name": "only", "prompt_inline": prompt}]
    body = {"name": name, "description": f"Works as {name}.", "execution_type": "single", "roles": roles, **fields}
    return str((await port.client.ok("POST", "/agents", body))["agent_id"])


def text(answer: str) -> dict[str, str]:
    return {"text": answer}


async def invoke(port: RegistryPort, pattern: str, members: list[Any], **fields: Any) -> dict[str, Any]:
    agents = [member if isinstance(member, dict) else {"agent_id": member, "role": "worker"} for member in members]
    body = {"name": f"a {pattern}", "description": "d", "pattern": pattern, "agents": agents, **fields}
    created = await port.client.ok("POST", "/architectures", body)
    assert created["status"] == "created"
    path = f"/architectures/{created['architecture_id']}"
    answer = await port.client.ok("POST", f"{path}/invoke", {"query": "Do it"})
    assert (answer["architecture"], answer["pattern"]) == (f"a {pattern}", pattern)
    return answer


def success(result: str) -> dict[str, str]:
    return {"status": "success", "result": result}


async def test_a_sequence_hands_on_answers_and_ends_with_a_failure(port: RegistryPort) -> None:
    """Each agent gets the answer before it; one that fails ends the run, and the rest are skipped."""
    first = await agent(port, "SeqFirst", text("from the first"))
    echo = await agent(port, "SeqEcho")
    failing = await agent(port, "SeqFailing", {"status": 400, "always": True})
    answer = await invoke(port, "sequential", [first, echo])
    assert answer["results"]["SeqFirst"] == success("from the first")
    assert "from the first" in answer["results"]["SeqEcho"]["result"]
    assert answer["answer"] == answer["results"]["SeqEcho"]["result"]
    answer = await invoke(port, "sequential", [first, failing, echo])
    assert [each["status"] for each in answer["results"].values()] == ["success", "error", "skipped"]
    assert answer["answer"] is None


async def test_parallel_agents_and_their_aggregator(port: RegistryPort) -> None:
    """All get the query; one that fails does not end the others; the aggregator gets all answers."""
    left, right = await agent(port, "ParLeft", text("L")), await agent(port, "ParRight", text("R"))
    failing = await agent(port, "ParFailing", {"status": 400, "always": True})
    answer = await invoke(port, "parallel", [left, failing, right])
    assert answer["results"]["ParLeft"] == success("L")
    assert answer["results"]["ParFailing"]["status"] == "error"
    assert answer["answer"].startswith("=== ParLeft ===\nL")
    joining = {"agent_id": await agent(port, "ParJoining", text("both")), "role": "aggregator"}
    assert (await invoke(port, "parallel", [joining, left, right]))["answer"] == "both"


async def test_a_loop_stops_by_its_condition_or_its_bound(port: RegistryPort) -> None:
    """The agents run again and again, until the condition holds or the iterations are used up."""
    worker = await agent(port, "Looping", text("done"))
    answer = await invoke(port, "loop", [worker], max_iterations=3)
    assert (answer["iterations"], answer["answer"]) == (3, "done")
    answer = await invoke(port, "loop", [worker], max_iterations=3, stop_when="answer contains done")
    assert answer["iterations"] == 1


async def test_a_coordinator_gives_tasks_and_a_hub_chooses(port: RegistryPort) -> None:
    """The coordinator's tasks run, and its second answer is the whole's; the hub's choice answers; each answers itself
    without a choice; and a wrong name is an error of the leader."""
    worker, other = await agent(port, "CoWorker", text("worked")), await agent(port, "CoOther", text("unused"))
    tasks = text(json.dumps({"tasks": [{"agent": "CoWorker", "task": "Work"}]}))
    leader = {"agent_id": await agent(port, "CoLeader", tasks), "role": "coordinator"}
    answer = await invoke(port, "coordinator", [worker, leader, other])
    assert answer["results"]["CoWorker"] == success("worked")
    assert answer["results"]["CoOther"] == {"status": "skipped"}
    hub = {"agent_id": await agent(port, "CoHub", text('{"agent": "CoOther"}')), "role": "hub"}
    answer = await invoke(port, "hub-spoke", [hub, worker, other])
    assert (answer["answer"], answer["results"]["CoWorker"]) == ("unused", {"status": "skipped"})
    alone = {"agent_id": await agent(port, "CoAlone", text("I know it")), "role": "hub"}
    for pattern in ("hub-spoke", "coordinator"):
        assert (await invoke(port, pattern, [alone, worker]))["answer"] == "I know it"
    wrong = {"agent_id": await agent(port, "CoWrong", text('{"agent": "Nobody"}')), "role": "hub"}
    answer = await invoke(port, "hub-spoke", [wrong, worker])
    assert "which is not an agent below it" in answer["results"]["CoWrong"]["error"]


async def test_a_hierarchy_follows_its_connections(port: RegistryPort) -> None:
    """A task goes down to the agent below the one below, and no other agent is asked."""

    def giving(name: str) -> dict[str, str]:
        return text(json.dumps({"tasks": [{"agent": name, "task": "Go down"}]}))

    leaf = await agent(port, "HiLeaf", text("leaf"))
    middle = await agent(port, "HiMiddle", giving("HiLeaf"))
    top = await agent(port, "HiTop", giving("HiMiddle"))
    tree = [{"from": top, "to": middle}, {"from": middle, "to": leaf}]
    answer = await invoke(port, "hierarchical", [leaf, middle, top], connections=tree)
    assert answer["results"]["HiLeaf"] == success("leaf")
    assert [each["status"] for each in answer["results"].values()] == ["success"] * 3


async def test_an_architecture_runs_detached_and_within_its_time(port: RegistryPort) -> None:
    """202 with the id of a call, whose result is the answer; an agent that takes longer than the timeout fails."""
    client, worker = port.client, await agent(port, "Detached", text("later"))
    body = {"name": "d", "description": "d", "pattern": "parallel", "agents": [{"agent_id": worker}]}
    path = f"/architectures/{(await client.ok('POST', '/architectures', body))['architecture_id']}"
    started = await client.ask("POST", f"{path}/invoke?detach=true", {"query": "Go"})
    assert started.status_code == 202
    call_id = started.json()["call_id"]
    await until(lambda: not list(port.daemon.router.calls))
    frame = await call(port.daemon, "call_result", token=TOKEN, call_id=call_id)
    assert frame["structured"]["result"]["results"] == {"Detached": success("later")}
    slow = await agent(port, "TooSlow", {"text": "x", "delay_s": 60})
    answer = await invoke(port, "sequential", [slow], timeout=1, retry_count=0)
    assert answer["results"]["TooSlow"]["status"] == "error"


async def test_calls_of_agents_are_repeated_as_often_as_it_says(
    port: RegistryPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent whose model is busy is called again ``retry_count`` times, and then has failed."""
    monkeypatch.setattr(turn_attempts, "MAX_ATTEMPTS", 1)
    monkeypatch.setattr(call_retry, "BASE_S", 0.0)
    busy = await agent(port, "Busy", {"status": 429, "always": True})
    counts = []
    for retry_count in (0, 2):
        before = len(port.simulator.requests)
        answer = await invoke(port, "sequential", [busy], retry_count=retry_count)
        assert answer["results"]["Busy"]["error"].startswith("RATE_LIMITED")
        counts.append(len(port.simulator.requests) - before)
    assert counts[1] == 3 * counts[0]


async def test_a_remote_agent_works_with_hosted_ones(port: RegistryPort) -> None:
    """An agent at a URL is called over A2A, if a source has this URL."""
    await agent(port, "Faraway", text("from afar"))
    origin = str(port.client.http.base_url)
    token = port.daemon.state.path / "remote.token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    source = {"type": "a2a", "url": f"{origin}/agents/Faraway", "allow_private": True}
    auth = {"auth": {"type": "bearer", "file": str(token)}}
    settings = port.daemon.settings.model_copy(update={"sources": read_sources({"faraway": {**source, **auth}})})
    port.daemon.settings, before = settings, port.daemon.settings
    port.daemon.sources.apply(settings.sources)
    try:
        await port.daemon.sources.loaded()
        await port.daemon.publisher.published()
        remote = {"name": "Remote one", "description": "d", "url": f"{origin}/agents/Faraway/"}
        agent_id = (await port.client.ok("POST", "/agents", remote))["agent_id"]
        answer = await invoke(port, "sequential", [agent_id, await agent(port, "Near")])
        assert answer["results"]["Remote one"] == success("from afar")
        assert answer["results"]["Near"]["status"] == "success"
    finally:
        port.daemon.settings = before
        port.daemon.sources.apply(before.sources)


async def test_what_cannot_be_invoked(port: RegistryPort) -> None:
    """Unknown architectures, agents that run elsewhere, wrong bodies, and tokens without the tool are refused."""
    client = port.client
    assert (await client.refused("POST", "/architectures/none/invoke", {"query": "x"}))[0] == 404
    elsewhere = {"name": "Elsewhere", "description": "d", "url": "https://agents.example/"}
    agent_id = (await client.ok("POST", "/agents", elsewhere))["agent_id"]
    body = {"name": "e", "description": "d", "pattern": "sequential", "agents": [{"agent_id": agent_id}]}
    path = f"/architectures/{(await client.ok('POST', '/architectures', body))['architecture_id']}/invoke"
    status, detail = await client.refused("POST", path, {"query": "x"})
    assert (status, "not hosted by this daemon: Elsewhere" in detail) == (422, True)
    for wrong in ({}, {"query": 1}, {"query": ""}, {"query": "x", "more": 1}):
        assert (await client.refused("POST", path, wrong))[0] == 422
    assert (await port.guest.refused("POST", path, {"query": "x"}))[0] == 403
    bad = {**body, "pattern": "mesh", "agents": []}
    status, detail = await client.refused("POST", "/architectures", bad)
    assert [each["loc"][1] for each in detail] == ["pattern", "agents"]
    twice = {**body, "pattern": "hierarchical", "connections": [{"from": agent_id, "to": "x"}]}
    status, detail = await client.refused("POST", "/architectures", twice)
    assert ["body", "connections", 0, "to"] in [each["loc"] for each in detail]


async def test_discover_finds_by_meaningful_words(port: RegistryPort) -> None:
    """The agent whose skills fit is recommended, with these skills; words such as 'to' match nothing; hidden agents are
    not recommended."""
    client = port.client
    for name, about in [("translate", "Translates contracts into French"), ("weather", "Forecasts rain to come")]:
        await client.ok("POST", "/skills", {"id": name, "name": name, "description": about, "examples": []})
    plain = {"description": "An agent.", "is_discoverable": True}
    lawyer = await client.ok("POST", "/agents", {"name": "Lawyer", **plain, "skill_ids": ["translate", "weather"]})
    await client.ok(
        "POST", "/agents", {"name": "Hidden", **plain, "is_discoverable": False, "skill_ids": ["translate"]}
    )
    found = await client.ok("GET", "/discover?query=who+can+translate+a+contract+to+french")
    assert found["recommended_agent"]["agent_id"] == lawyer["agent_id"]
    assert [skill["id"] for skill in found["matching_skills"]] == ["translate"]
    assert await client.ok("GET", "/discover?query=to") == {"query": "to", "message": "No matching agent found"}
    assert (await client.refused("GET", "/discover"))[0] == 422
