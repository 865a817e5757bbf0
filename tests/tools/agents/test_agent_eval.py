"""Evaluations of agents, with a daemon whose models follow scripts."""

import asyncio
import tomllib
from typing import Any

import pytest
import pytest_asyncio
from toold.cli.agent_eval_command import case_rows, failure_lines
from toold.cli.agent_evals import EvalFile, EvalRunner
from toold.tools import read_agents

from .hosted import AGENTS, Hosted, calls, script

pytestmark = pytest.mark.asyncio(loop_scope="module")

SCRIPTED = script(calls(("echo", {"value": 5}), ("version", {})), "All is well.")


@pytest_asyncio.fixture(loop_scope="module")
async def scripted(hosted: Hosted) -> Hosted:
    """A daemon whose agent ``scripted`` calls two tools and answers."""
    tables = tomllib.loads(AGENTS)["agents"]
    tables["scripted"] = {"description": "Has a script.", "prompt": SCRIPTED, "tools": ["echo", "version"]}
    hosted.daemon.agents.apply(read_agents(tables))
    await hosted.daemon.publisher.published()
    return hosted


async def evaluated(hosted: Hosted, *cases: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """The outcomes of cases, which are named by their position."""
    named = [{"name": str(number), "prompt": "Go.", **case} for number, case in enumerate(cases)]
    file = EvalFile.model_validate({"agent": "scripted", "cases": named, **fields})
    return [outcome.data() for outcome in await EvalRunner(hosted.client, file, lambda *_: None).run()]


async def test_cases_pass_or_fail_with_reasons(scripted: Hosted) -> None:
    """Each case runs several times; its rate, interval and cost are counted, and a failure names a run."""
    good, bad = await evaluated(
        scripted,
        {"expect": [{"called": "echo", "where": "value = 5"}, {"order": ["echo", "version"]}, {"contains": "well"}]},
        {"expect": [{"not_called": "echo"}], "runs": 1, "min_pass": 0.5},
        runs=3,
    )
    assert (good["passed"], good["runs"], good["reached"]) == (3, 3, True)
    assert good["interval"] == [pytest.approx(0.438503), 1.0]
    assert (bad["rate"], bad["reached"]) == (0.0, False)
    assert all(outcome["input_tokens"] > 0 for outcome in good["outcomes"])
    (line,) = failure_lines([good, bad])
    run_id = bad["outcomes"][0]["run_id"]
    assert line == f'1: called echo: {{"value": 5}} (1 of 1 runs; toold agents runs show {run_id})'
    assert case_rows([good])[0][2:6] == ("3/3", "100%", "44% to 100%", "100%")


async def test_a_judge_gives_a_score(scripted: Hosted) -> None:
    """A score below the wanted one fails the run, an answer without a score is asked for again, and a run that has
    failed anyway is not judged."""
    low = 'Is it kind? [[sim:script=[{"text": "{\\"score\\": 0.4, \\"reason\\": \\"curt\\"}"}]]]'
    before = len(scripted.simulator.log)
    judged, refused, unjudged = await evaluated(
        scripted,
        {"expect": [{"judge": low}]},
        {"expect": [{"judge": 'Is it? [[sim:script=[{"text": "yes"}]]]'}]},
        {"expect": [{"judge": low}, {"contains": "ill"}]},
        judge={"model": "kimi-k2.6", "max_tokens": 200},
    )
    assert list(judged["outcomes"][0]["failures"]) == ["the judge gave 0.4, less than 0.7: curt"]
    assert list(judged["outcomes"][0]["scores"]) == [0.4]
    assert "no score from 0 to 1: yes" in refused["outcomes"][0]["failures"][0]
    assert "scores" not in unjudged["outcomes"][0]
    asked = [request.body for request in scripted.simulator.log[before:] if request.body["model"] == "kimi-k2.6"]
    assert len(asked) == 3
    assert "All is well." in asked[0]["messages"][-1]["content"]


async def test_runs_that_end_otherwise_fail(scripted: Hosted) -> None:
    """A run that fails, and one that waits for a person, count as failed; the latter is cancelled."""
    wants = script(calls(("echo", {"value": "x"})), "done")
    failed, paused, unknown = await evaluated(
        scripted,
        {"agent": "broken", "expect": [{"contains": "x"}]},
        {"agent": "careful", "prompt": wants, "expect": [{"contains": "x"}]},
        {"agent": "absent", "expect": [{"contains": "x"}]},
    )
    assert "the run failed: SERVICE_UNAVAILABLE" in failed["outcomes"][0]["failures"][0]
    assert "it waited for: approve echo" in paused["outcomes"][0]["failures"][0]
    assert "TOOL_NOT_FOUND" in unknown["outcomes"][0]["failures"][0]
    listed = (await scripted.client.call("agent_runs", {"states": ["paused"]})).structured
    assert listed["runs"] == []


async def test_cancelling_an_evaluation_cancels_its_runs(scripted: Hosted) -> None:
    """At most ``parallel`` runs are in progress, and none continues after the evaluation was cancelled."""
    slow = {"prompt": script({"text": "late", "delay_s": 600}), "agent": "helper", "expect": [{"contains": "x"}]}
    running = asyncio.create_task(evaluated(scripted, slow, runs=5, parallel=2))

    async def in_progress() -> int:
        return len((await scripted.client.call("agent_runs", {"states": ["running"]})).structured["runs"])

    while await in_progress() < 2:
        await asyncio.sleep(0.01)
    assert await in_progress() == 2
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    while await in_progress():
        await asyncio.sleep(0.01)
