"""Runs, child calls, agents' runs, jobs and what they spent, on each database."""

import json
import time
from typing import Any

from msgspec.structs import replace
from tests.store.contract.conftest import OpenStore
from tests.store.contract.stored_calls import Calls, stored
from toold.protocol.agent_record import AgentRunState
from toold.protocol.tool_call import Cost, ModelUsage, Usage
from toold.store import Retention, Store, day_of


async def test_a_run_is_found_by_its_tool_and_principal(store: Store, call: Calls) -> None:
    """An orchestration call that is not a child has a run; a call that resumes one has that run."""
    store.sessions.open(call.session)
    for key in ("a", "b"):
        await store.journal.start(call.starts(key, orchestration=True))
    await store.journal.start(call.child("e0-a", "t1", orchestration=True))
    assert await store.journal.find_run("e0-a", "ann", "chat") == "e0-a"
    assert await store.journal.find_run("e0-a", "bob", "chat") is None
    assert await store.journal.find_run("e0-a", "ann", "echo") is None
    assert await store.journal.find_run("e0-a/t1", "ann", "echo") is None
    await store.journal.resume_run("e0-b", "e0-a")
    assert await store.journal.find_run("e0-b", "ann", "chat") == "e0-a"


async def test_child_calls_are_found_by_their_run_and_name(store: Store, call: Calls) -> None:
    """With their results, for their principal; one that has started counts as interrupted. The session does not
    have them.
    """
    store.sessions.open(call.session)
    await store.journal.start(call.starts("a", orchestration=True))
    for name in ("t1", "t2"):
        assert await store.journal.start(call.child("e0-a", name))
    await store.journal.end(call.child_ends("e0-a", "t1", b"1"))
    first, second = [await store.journal.child_call("e0-a", name, "ann") for name in ("t1", "t2")]
    assert first is not None
    assert second is not None
    assert (first.state, first.result, first.tool, second.state) == ("done", b"1", "echo", "interrupted")
    assert await store.journal.child_call("e0-a", "t1", "bob") is None
    assert await store.journal.children_of_run("e0-a", "ann") == {
        "t1": ("echo", b"arguments of t1"),
        "t2": ("echo", b"arguments of t2"),
    }
    assert await stored(store) == {}
    assert await store.sessions.ended_call("e0-a", "t1") is None


async def test_which_children_run_again(store: Store, call: Calls) -> None:
    """With ``replace``: those whose result is gone, and those of orchestration tools; no other."""
    await store.journal.start(call.starts("a", orchestration=True))
    for name, result in (("expired", None), ("done", b"1"), ("steps", b"2")):
        await store.journal.start(call.child("e0-a", name, orchestration=name == "steps"))
        await store.journal.end(call.child_ends("e0-a", name, result))
    again = [
        await store.journal.start(call.child("e0-a", name, replace=True, orchestration=name == "steps"))
        for name in ("expired", "done", "steps")
    ]
    assert again == [True, False, True]
    assert not await store.journal.start(call.child("e0-a", "expired"))


async def test_results_of_a_run_that_has_not_ended_stay(open_again: OpenStore, call: Calls) -> None:
    """However old they are, also of nested children; from its end on they expire."""
    store = open_again(retention=Retention(result_ttl_s=50.0))
    await store.journal.start(call.starts("a", orchestration=True))
    for run, name in (("e0-a", "t1"), ("e0-a/t1", "t2"), ("e0-ab", "t1")):
        await store.journal.start(call.child(run, name))
        await store.journal.end(replace(call.child_ends(run, name, b"1"), at=time.time() - 100))
    states = [await store.journal.child_call(run, name, "ann") for run, name in (("e0-a", "t1"), ("e0-a/t1", "t2"))]
    assert [state and state.state for state in states] == ["done", "done"]
    await store.journal.end(call.ends("a", run="e0-a"))
    states = [
        await store.journal.child_call(run, name, "ann")
        for run, name in (("e0-a", "t1"), ("e0-a/t1", "t2"), ("e0-ab", "t1"))
    ]
    assert [state and state.state for state in states] == ["expired", "expired", "done"]
    await store.journal.resume_run("e0-x", "e0-a")
    resumed = await store.journal.child_call("e0-a", "t1", "ann")
    assert resumed is not None
    assert resumed.state == "done"
    await store.close()


async def test_unfinished_results_have_a_separate_limit(open_again: OpenStore, call: Calls) -> None:
    """Beyond it the oldest results of runs that have not ended are deleted, and their detached call is marked."""
    store = open_again(retention=Retention(results_bytes=1000, unfinished_bytes=250))
    store.sessions.open(call.session)
    await store.journal.start(call.detached("d"))
    for name in ("t1", "t2", "t3"):
        await store.journal.start(call.child("e0-d", name))
        await store.journal.end(call.child_ends("e0-d", name, bytes(100)))
    states = [await store.journal.child_call("e0-d", name, "ann") for name in ("t1", "t2", "t3")]
    assert [state and state.state for state in states] == ["expired", "done", "done"]
    detached = await store.journal.find_detached("e0-d", "ann")
    assert detached is not None
    assert detached.dropped
    await store.close()


async def test_the_creator_of_a_detached_call_is_answered_with_its_id(open_again: OpenStore, call: Calls) -> None:
    """If the process ends before the answer is stored; and either id finds the run."""
    store = open_again()
    store.sessions.open(call.session)
    await store.journal.start(call.starts("a"))
    await store.journal.start(call.detached("d", creator="e0-a"))
    assert await store.journal.find_run("e0-a", "ann", "deep") == "e0-d"
    await store.close()
    store = open_again()
    state, result = (await stored(store))["a"]
    assert state == "done"
    assert result is not None
    assert json.loads(result)["structured"]["call_id"] == "e0-d"
    await store.close()


async def test_agents_runs_are_listed(store: Store, call: Calls) -> None:
    """The newest first, by principal, agent and state, with their turns, calls and spending; without other
    orchestration calls.
    """
    other, began = Calls("s-2", "bob"), float(int(time.time())) - 1000
    for calls, key, at in ((call, "r1", 0), (call, "r2", 100), (other, "r3", 200), (call, "plain", 300)):
        row = calls.row(key, tool="desk", outcome="OUTCOME_UNKNOWN", started_at=began + at)
        await store.journal.start(calls.starts(key, row=row, orchestration=True))
        if key != "plain":
            await store.journal.start(calls.child(f"e0-{key}", "snapshot", "agent_snapshot"))
    spent: dict[str, Any] = {"input_tokens": 7, "output_tokens": 1, "cost_amount": 0.5, "cost_currency": "USD"}
    for name, tool in (("t1", "agent_turn"), ("t1#2", "agent_turn"), ("t1.0", "echo"), ("x.s3", "echo")):
        await store.journal.start(call.child("e0-r1", name, tool))
        await store.journal.end(call.child_ends("e0-r1", name, started_at=began + 10, **spent))
    row = call.row("r1", tool="desk", started_at=began, outcome="TIMEOUT", message="late", latency_ms=50_000.0)
    await store.journal.end(call.ends("r1", row=row, run="e0-r1", stopped_by="max_turns"))
    second, first = await store.journal.agent_runs("ann", agent=None, states=(), limit=9)
    assert (second.run_id, second.state, second.turns) == ("e0-r2", "running", 0)
    assert (first.run_id, first.state, first.error, first.message) == ("e0-r1", "failed", "TIMEOUT", "late")
    assert (first.stopped_by, first.ended_at, first.turns, first.calls) == ("max_turns", began + 50, 1, 2)
    assert (first.input_tokens, first.output_tokens, first.cost) == (28, 4, {"USD": 2.0})
    wanted: list[tuple[str | None, str | None, list[AgentRunState], int]] = [
        (None, None, [], 1),
        ("ann", None, ["failed"], 5),
        ("ann", "other", [], 5),
        ("bob", "desk", ["running", "paused"], 5),
    ]
    listed = [
        [run.run_id for run in await store.journal.agent_runs(principal, agent=agent, states=states, limit=limit)]
        for principal, agent, states, limit in wanted
    ]
    assert listed == [["e0-r3"], ["e0-r1"], [], ["e0-r3"]]


async def test_many_runs_are_read_in_pages(store: Store, call: Calls) -> None:
    """A run beyond the first page is found by its state."""
    began = time.time() - 1000
    for number in range(250):
        row = call.row(f"r{number}", tool="desk", outcome="OUTCOME_UNKNOWN", started_at=began)
        await store.journal.start(call.starts(f"r{number}", row=row, orchestration=True))
        await store.journal.start(call.child(f"e0-r{number}", "snapshot", "agent_snapshot"))
    row = call.row("r0", tool="desk", started_at=began)
    await store.journal.end(call.ends("r0", row=row, run="e0-r0", stopped_by=""))
    (found,) = await store.journal.agent_runs("ann", agent=None, states=["finished"], limit=5)
    assert found.run_id == "e0-r0"
    assert len(await store.journal.agent_runs("ann", agent=None, states=(), limit=300)) == 250


async def test_an_agents_record_has_its_children(store: Store, call: Calls) -> None:
    """In order, with paths and errors; results of turns, and of tools if asked for. A nested agent has its own."""
    await store.journal.start(call.starts("r1", orchestration=True))
    children = [
        ("e0-r1", "snapshot", "agent_snapshot", b'{"v": 1}'),
        ("e0-r1", "t1", "agent_turn", b'{"text": "x"}'),
        ("e0-r1", "t1.0", "echo", b'{"error": {"code": "TIMEOUT"}}'),
        ("e0-r1", "t1.1", "helper", b"not JSON"),
        ("e0-r1/t1.1", "snapshot", "agent_snapshot", b"{}"),
        ("e0-r1/t1.1", "t1", "agent_turn", b"{}"),
    ]
    for run, name, tool, result in children:
        await store.journal.start(call.child(run, name, tool, orchestration=tool == "helper"))
        await store.journal.end(call.child_ends(run, name, result))
    record = await store.journal.agent_record("e0-r1", "ann", all_results=False)
    assert record is not None
    assert [(entry.path, entry.error, entry.result) for entry in record.entries] == [
        ("snapshot", None, b'{"v": 1}'),
        ("t1", None, b'{"text": "x"}'),
        ("t1.0", "TIMEOUT", None),
        ("t1.1", None, None),
        ("t1.1/snapshot", None, b"{}"),
        ("t1.1/t1", None, b"{}"),
    ]
    full = await store.journal.agent_record("e0-r1", None, all_results=True)
    assert full is not None
    assert full.entries[3].result == b"not JSON"
    nested = await store.journal.agent_record("e0-r1/t1.1", "ann", all_results=False)
    assert nested is not None
    assert (nested.summary.agent, nested.summary.state, nested.summary.turns) == ("helper", "finished", 1)
    assert [entry.path for entry in nested.entries] == ["snapshot", "t1"]
    assert await store.journal.agent_record("e0-r1", "bob", all_results=False) is None
    assert await store.journal.agent_record("e0-unknown", "ann", all_results=False) is None


async def test_jobs_are_found_by_what_they_work_on(store: Store, call: Calls) -> None:
    """The newest first, with their steps, by id, subject and outcome; without detached calls of other tools."""
    store.sessions.open(call.session)
    began = float(int(time.time())) - 1000
    for key, at, subject in (("j1", began, "x"), ("j2", began + 100, "y"), ("other", began + 200, "x")):
        start = call.detached(key)
        tool = "deep" if key != "other" else "chat"
        row = call.row(key, tool=tool, outcome="OUTCOME_UNKNOWN", started_at=at)
        await store.journal.start(call.starts(key, row=row, detached=start.detached, orchestration=True))
        await store.journal.start(call.child(f"e0-{key}", f"begin:{subject}"))
    result = json.dumps({"structured": {"url": "u"}, "error": {"message": "slow"}}).encode()
    await store.journal.end(call.child_ends("e0-j1", "begin:x", result, started_at=began + 1, latency_ms=2000.0))
    row = call.row("j1", tool="deep", started_at=began, outcome="TIMEOUT", message="m", latency_ms=9000.0)
    await store.journal.end(call.ends("j1", row=row, run="e0-j1"))
    second, first = await store.journal.jobs("ann", ["deep", "unused"], limit=5)
    assert (second.id, second.unfinished, second.outcome) == ("e0-j2", True, None)
    assert (first.id, first.unfinished, first.outcome, first.ended_at) == ("e0-j1", False, "TIMEOUT", began + 9)
    (step,) = first.steps
    assert (step.name, step.state, step.error, step.fields) == ("begin:x", "done", "slow", {"url": "u"})
    assert await store.journal.step_ends(first) == {"begin:x": began + 3}
    found = [
        [job.id for job in await store.journal.jobs("ann", ["deep"], limit=5, **wanted)]
        for wanted in (
            {"subject": "y"},
            {"job_id": "e0-j1"},
            {"outcomes": ["unfinished"]},
            {"outcomes": ["error"]},
            {"outcomes": ["ok"]},
        )
    ]
    assert found == [["e0-j2"], ["e0-j1"], ["e0-j2"], ["e0-j1"], []]
    assert await store.journal.jobs("bob", ["deep"], limit=5) == []


async def test_what_agents_spent_by_day(store: Store, call: Calls) -> None:
    """The sums of a day are separate by agent, and complete however many runs there were."""
    used = ModelUsage("kimi", "k", 1, Usage(10, 5), Cost(0.5, "USD"))
    for number in range(120):
        agent = ("a", "b", "")[number % 3]
        await store.journal.start(call.child(f"e0-{number}", "t1", "agent_turn"))
        await store.journal.end(replace(call.child_ends(f"e0-{number}", "t1"), usage_by_model=(used,), agent=agent))
    spent = {part.agent: part for part in await store.audit.usage_since(day_of(time.time() - 86_400))}
    assert {agent: (part.completions, part.cost) for agent, part in spent.items()} == {
        "": (40, 20.0),
        "a": (40, 20.0),
        "b": (40, 20.0),
    }
    assert await store.audit.usage_since("2000-01-01", "bob") == []


async def test_what_a_run_spent(store: Store, call: Calls) -> None:
    """Its calls at any depth, and those of a call that resumed it; a tool's spending of a day has its descendants'."""
    for key in ("a", "b"):
        await store.journal.start(call.starts(key, orchestration=True))
    await store.journal.resume_run("e0-b", "e0-a")
    now = time.time()
    money: dict[str, Any] = {"provider": "kimi", "model": "k", "input_tokens": 10, "output_tokens": 5}
    for run, name, cost in (
        ("e0-a", "t1", 1.0),
        ("e0-a/inner~2", "t1~2", 2.0),
        ("e0-b", "t2", 4.0),
        ("e0-c", "t", 8.0),
    ):
        await store.journal.start(call.child(run, name, "chat"))
        await store.journal.end(
            call.child_ends(run, name, **money, started_at=now, cost_amount=cost, cost_currency="USD")
        )
    used = await store.journal.usage_of_run("e0-a", "ann")
    assert sorted(each.usage.cost.amount for each in used if each.usage.cost) == [1.0, 2.0, 4.0]
    assert used[0].usage == ModelUsage("kimi", "k", 1, Usage(10, 5), Cost(1.0, "USD"))
    assert [each.usage.cost for each in await store.journal.usage_of_run("e0-a/inner", "ann")] == [Cost(2.0, "USD")]
    assert await store.journal.usage_of_run("e0-a", "bob") == []
    assert await store.journal.spent_by_tool("chat", day_of(now)) == {"USD": 15.0}
    assert await store.journal.spent_by_tool("echo", day_of(now)) == {}
