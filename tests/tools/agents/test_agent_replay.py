"""Replays of recorded runs: with another prompt or model, and with tools that are answered from the recording."""

import re
from typing import Any

import pytest
from toold.daemon.config.settings_mapping import hosted_agents
from toold.protocol.error_codes import CallError
from toold.tools import read_agents
from toold.tools.agents import agent_run, agent_snapshot
from toold.tools.agents.run_difference import MAX_COMPARED_LINES, compared

from .hosted import Hosted, calls, script
from .test_compaction import turns_until_a_summary

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def recorded(hosted: Hosted, agent: str, prompt: str) -> str:
    """The id of a new run."""
    await hosted.ask(agent, prompt)
    listed = (await hosted.client.call("agent_runs", {"agent": agent, "limit": 1})).structured
    return str(listed["runs"][0]["run_id"])


async def replay(hosted: Hosted, run_id: str, **arguments: Any) -> Any:
    """The data of a replay."""
    return (await hosted.client.call("agent_replay", {"run_id": run_id, **arguments})).structured


async def test_tools_are_answered_from_the_recording(hosted: Hosted) -> None:
    """With nothing changed, the models read the recorded results, and the replay makes the same calls."""
    run_id = await recorded(hosted, "helper", script(calls(("status", {}), ("echo", {"value": 1})), "done"))
    (before,) = hosted.sent()
    outcome = await replay(hosted, run_id)
    assert (outcome["difference"]["same_calls"], outcome["difference"]["same_answer"]) == (True, True)
    assert (outcome["unanswered"], outcome["unused"]) == ([], [])
    (after,) = hosted.sent()
    assert [row["content"] for row in after] == [row["content"] for row in before]  # status has the uptime


@pytest.mark.parametrize(
    ("agent", "prompt"),
    [
        ("chain", script("a", "b")),
        ("panel", script("a", "b", "c")),
        ("desk", script(calls(("delegate_to_clerk", {"prompt": script(calls(("echo", {"value": 7})), "w")})), "all")),
        ("switch", script(calls(("transfer_to_sales", {"prompt": script("sold")})))),
        ("manager", script(calls(("helper", {"prompt": script("inner"), "dry_run": True})), "outer")),
    ],
)
async def test_every_flow_can_be_replayed(hosted: Hosted, agent: str, prompt: str) -> None:
    """The replay of roles, delegations and other agents' answers gives the recorded calls and answer."""
    outcome = await replay(hosted, await recorded(hosted, agent, prompt))
    assert outcome["difference"]["same_calls"]
    assert outcome["recorded"]["answer"] == outcome["replayed"]["answer"] != ""
    assert outcome["recorded"]["turns"] == outcome["replayed"]["turns"]


async def test_another_prompt_is_compared(hosted: Hosted) -> None:
    """A call that the recording has is answered; another one is an error that the model reads, and is listed, and so is
    a recorded call that was not made. The text shows what differs."""
    prompt = script(calls(("echo", {"value": 1}), ("version", {})), "old answer")
    table = {"description": "Has a script.", "prompt": prompt, "tools": ["echo", "version"]}
    hosted.daemon.agents.apply({**hosted_agents(hosted.daemon.settings), **read_agents({"scripted": table})})
    await hosted.daemon.publisher.published()
    run_id = await recorded(hosted, "scripted", "Go.")
    changed = script(calls(("version", {}), ("echo", {"value": 2})), "new answer")
    result = await hosted.client.call("agent_replay", {"run_id": run_id, "prompt": changed})
    outcome = result.structured
    assert outcome["replayed"]["answer"] == "new answer"
    assert [(call["tool"], call["arguments"]) for call in outcome["unanswered"]] == [("echo", {"value": 2})]
    assert [(call["tool"], call["id"]) for call in outcome["unused"]] == [("echo", "t1.0")]
    assert [call["outcome"] for call in outcome["replayed"]["calls"]] == ["ok", "NOT_FOUND"]
    read = [row["content"] for row in hosted.sent()[0] if row["role"] == "tool"]
    assert "no further call of this tool with these arguments" in read[1]
    assert '- main: echo {"value":1} ok' in result.text
    assert '+ main: echo {"value":2} NOT_FOUND' in result.text
    assert "- old answer" in result.text


async def test_another_model_is_compared(hosted: Hosted) -> None:
    """All roles get the model, or the one that is named; the numbers say what it used."""
    run_id = await recorded(hosted, "chain", script("a", "b"))
    outcome = await replay(hosted, run_id, model="kimi-k2.6", role="second")
    assert outcome["replayed"]["models"] == {**outcome["recorded"]["models"], "second": "kimi-k2.6"}
    assert hosted.simulator.log[-1].body["model"] == "kimi-k2.6"
    assert outcome["replayed"]["input_tokens"] > 0


async def test_summaries_are_part_of_a_run(hosted: Hosted) -> None:
    """They are shown, are not counted as turns, and are made again; a model with a larger window needs none."""
    run_id = await recorded(hosted, "narrow", turns_until_a_summary("They were words.", "all done"))
    run = (await hosted.client.call("agent_runs", {"run_id": run_id})).structured
    assert [step["id"] for step in run["steps"] if step.get("summary")] == ["summary.1"]
    assert sum(step["usage"]["input_tokens"] for step in run["steps"]) == run["input_tokens"]
    same = await replay(hosted, run_id)
    assert (same["recorded"]["turns"], same["replayed"]["turns"], same["difference"]["same_answer"]) == (4, 4, True)
    assert same["recorded"]["input_tokens"] == same["replayed"]["input_tokens"] == run["input_tokens"]
    before = len(hosted.simulator.log)
    larger = await replay(hosted, run_id, model="kimi-k2.6")
    assert len(hosted.simulator.log) - before == larger["replayed"]["turns"]


async def test_files_of_long_results_can_be_read(hosted: Hosted) -> None:
    """A long result of a replay is in a file whose handle no recording has: ``read_result`` reads it."""
    long = calls(*[("fill", {"text": "word ", "times": 5000})] * 2)
    await hosted.ask("narrow", script(long, "done"))
    stored = re.search(r'"handle": "([^"]+)"', hosted.sent()[0][-1]["content"])
    assert stored is not None
    run_id = await recorded(hosted, "narrow", "Go.")
    reading = script(calls(("read_result", {"handle": stored[1], "offset": 24_995})), "read")
    outcome = await replay(hosted, run_id, prompt=reading)
    assert (outcome["unanswered"], outcome["replayed"]["calls"][0]["outcome"]) == ([], "ok")
    assert "word" in hosted.sent()[0][-1]["content"]


async def test_a_run_of_an_earlier_engine_can_be_replayed(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay repeats no call of the run, so it does not need the run's engine, which resuming does."""
    with monkeypatch.context() as earlier:
        for module in (agent_run, agent_snapshot):
            earlier.setattr(module, "ENGINE", 0)
        run_id = await recorded(hosted, "helper", script("done"))
    assert (await replay(hosted, run_id))["difference"]["same_answer"]


async def test_live_tools_run_if_they_are_read_only(hosted: Hosted) -> None:
    """A live replay runs read-only tools, and not those whose calls a person must approve."""
    run_id = await recorded(hosted, "helper", script(calls(("status", {})), "done"))
    (before,) = hosted.sent()
    await replay(hosted, run_id, tools="live")
    (after,) = hosted.sent()
    assert after[-1]["content"] != before[-1]["content"]
    paused = (await hosted.ask("careful", script(calls(("echo", {"value": 1})), "done"))).structured
    decision = {"id": "t1.0", "decision": "reject"}
    await hosted.client.call("agent_decide", {"call_id": paused["call_id"], "decisions": [decision]})
    ended = {"agent": "careful", "states": ["finished"]}
    while not (runs := (await hosted.client.call("agent_runs", ended)).structured["runs"]):
        pass
    outcome = await replay(hosted, runs[0]["run_id"], tools="live", allow_writes=True)
    (unanswered,) = outcome["unanswered"]
    assert "a person rejected it" in unanswered["reason"]


async def test_a_replay_has_limits_of_its_own(hosted: Hosted) -> None:
    """A replay whose tokens do not suffice asks no model, and says why."""
    run_id = await recorded(hosted, "helper", script("done"))
    before = len(hosted.simulator.log)
    outcome = await replay(hosted, run_id, max_tokens=1)
    assert outcome["replayed"]["state"] == "failed"
    assert "RATE_LIMITED" in outcome["replayed"]["error"]
    assert len(hosted.simulator.log) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": "p"}, "say which role gets the prompt: first, second"),
        ({"role": "third"}, "its roles are first, second"),
        ({"prompt": "p", "prompt_ref": "r"}, "Use one of prompt and prompt_ref"),
        ({"allow_writes": True}, 'needs tools = "live"'),
        ({"model": "gpt-0"}, "Unknown model 'gpt-0'"),
        ({"run_id": "0-1"}, "There is no run '0-1'"),
        ({"run_budget": "much"}, "must be amounts such as 5 USD"),
    ],
)
async def test_an_impossible_replay_is_refused(hosted: Hosted, arguments: dict[str, Any], says: str) -> None:
    """The error names the argument and what it may be, before any model is asked."""
    run_id = await recorded(hosted, "chain", script("a", "b"))
    before = len(hosted.simulator.log)
    with pytest.raises(CallError) as raised:
        await replay(hosted, **{"run_id": run_id, **arguments})
    assert says in raised.value.message
    assert len(hosted.simulator.log) == before


async def test_long_answers_are_compared_in_part() -> None:
    """Beyond the limit of lines, the comparison says that it is not complete."""
    lines = [str(number) for number in range(MAX_COMPARED_LINES + 1)]
    shown = compared(lines, lines[1:])
    assert shown[0] == "- 0"
    assert "only the first 2,000 lines are compared" in shown[-1]
