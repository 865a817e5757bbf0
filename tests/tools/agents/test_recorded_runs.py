"""The recorded runs of agents: their list, and one run turn by turn."""

import json
from typing import Any

import pytest
from msgspec.structs import replace
from toold.cli.agent_runs_command import run_lines, run_rows
from toold.daemon.observability.agent_run_view import AgentRunView
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError, ProviderError
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools.agents.recorded_run import read_run

from .hosted import Hosted, calls, script

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def runs(hosted: Hosted, **arguments: Any) -> Any:
    """The answer of ``agent_runs``."""
    return (await hosted.client.call("agent_runs", arguments)).structured


async def last_run(hosted: Hosted, agent: str) -> Any:
    """The newest run of an agent, turn by turn."""
    (summary,) = (await runs(hosted, agent=agent, limit=1))["runs"]
    return await runs(hosted, run_id=summary["run_id"])


async def test_the_list_says_how_each_run_ended(hosted: Hosted) -> None:
    """Runs are listed newest first with turns, calls, tokens, what stopped them, their error, or what they wait for;
    by agent and by state."""
    again = calls(("version", {}))
    await hosted.ask("helper", script(again, again, again))
    with pytest.raises(ProviderError):
        await hosted.ask("helper", script({"status": 400, "always": True}))
    paused = (await hosted.ask("careful", script(calls(("echo", {"value": "x"})), "done"))).structured
    waiting, failed, stopped = (await runs(hosted))["runs"]
    assert (waiting["state"], waiting["agent"], waiting["requests"]) == ("paused", "careful", 1)
    assert waiting["call_id"] == paused["call_id"] != waiting["run_id"]
    assert (failed["state"], failed["error"]) == ("failed", "PROVIDER_ERROR")
    assert (stopped["state"], stopped["stopped_by"], stopped["turns"], stopped["calls"]) == (
        *("finished", "max_turns"),
        *(4, 3),
    )
    assert stopped["input_tokens"] > 0 < stopped["output_tokens"]
    assert [run["run_id"] for run in (await runs(hosted, agent="helper", limit=1))["runs"]] == [failed["run_id"]]
    assert [run["state"] for run in (await runs(hosted, states=["paused"]))["runs"]] == ["paused"]
    with pytest.raises(InvalidArgumentsError, match="limit"):
        await runs(hosted, limit=101)
    (first, *_) = run_rows([waiting, failed, stopped])
    assert first[-1] == f"1 request waits: toold agents decide {paused['call_id']}"
    await hosted.client.call("cancel_call", {"call_id": paused["call_id"]})
    (ended,) = (await runs(hosted, agent="careful"))["runs"]
    assert (ended["state"], ended["error"]) == ("failed", "CANCELLED")


async def test_a_run_is_shown_turn_by_turn(hosted: Hosted) -> None:
    """Each turn has its role, model, text, tokens and calls with arguments and outcome, also below a role to which
    another one delegated; a call that was not made says so."""
    work = script(calls(("echo", {"value": 7}), ("nonsense", {})), "worked")
    answer = await hosted.ask("desk", script(calls(("delegate_to_clerk", {"prompt": work})), "all done"))
    run = await last_run(hosted, "desk")
    assert (run["answer"], run["turns"], run["calls"]) == ("all done", answer.structured["turns"], 2)
    assert [(step["id"], step["role"]) for step in run["steps"]] == [
        ("t1", "lead"), ("t1.0/t1", "clerk"), ("t1.0/t2", "clerk"), ("t2", "lead"),
    ]  # fmt: skip
    echo, nonsense = run["steps"][1]["calls"]
    assert (echo["function"], json.loads(echo["arguments"]), echo["state"]) == ("echo", {"value": 7}, "ok")
    assert echo["result_bytes"] > 0
    assert nonsense["state"] == "not_made"
    usage = run["steps"][0]["usage"]
    assert sum(step["usage"]["input_tokens"] for step in run["steps"]) == run["input_tokens"] >= usage["input_tokens"]
    assert run["models"]["lead"] == run["steps"][0]["model"]
    text = "\n".join(run_lines(run))
    assert '→ echo {"value": 7}' in text
    assert "prompt: Do it." in text


@pytest.mark.parametrize(("agent", "answer"), [("chain", "b"), ("panel", "c"), ("switch", "sold"), ("rounds", "good")])
async def test_the_answer_of_each_flow_is_known(hosted: Hosted, agent: str, answer: str) -> None:
    """The recorded answer is the run's answer, of any flow."""
    prompts = {
        "chain": script("a", "b"),
        "panel": script("a", "b", "c"),
        "switch": script(calls(("transfer_to_sales", {"prompt": script("sold")}))),
        "rounds": script("a", "good"),
    }
    asked = await hosted.ask(agent, prompts[agent])
    run = await last_run(hosted, agent)
    assert run["answer"] == asked.structured["answer"]


async def test_the_run_of_an_agent_that_another_called(hosted: Hosted) -> None:
    """It is not in the list, but is named by the run that called it, and shown by that name."""
    inner = script(calls(("version", {})), "inner answer")
    await hosted.ask("manager", script(calls(("helper", {"prompt": inner})), "outer"))
    run = await last_run(hosted, "manager")
    assert [step["id"] for step in run["steps"]] == ["t1", "t2"]
    (path,) = run["nested_runs"]
    nested = await runs(hosted, run_id=f"{run['run_id']}/{path}")
    assert (nested["agent"], nested["answer"], nested["state"]) == ("helper", "inner answer", "finished")
    assert 0 < nested["input_tokens"] < run["input_tokens"]


async def test_a_run_belongs_to_its_principal(hosted: Hosted) -> None:
    """Others do not see it; an operator sees it, and its content only if the audit has full content."""
    await hosted.ask("helper", script("secret"))
    run_id = (await last_run(hosted, "helper"))["run_id"]
    settings = hosted.daemon.settings
    view = AgentRunView(hosted.daemon.store, lambda: settings)
    assert await view.runs(Principal("ann"), agent=None, states=(), limit=5) == []
    with pytest.raises(NotFoundError, match="agent_runs without run_id"):
        await view.record(Principal("ann"), run_id)
    record = await view.record(Principal("boss", operator=True), run_id)
    assert record.summary.principal == "local"
    assert view.hidden_because(LOCAL, record.summary) is None
    assert 'audit_content = "full"' in (view.hidden_because(Principal("boss", operator=True), record.summary) or "")
    settings = settings.model_copy(update={"audit_content": "full"})
    assert view.hidden_because(Principal("boss", operator=True), record.summary) is None


async def test_what_is_not_kept_is_named(hosted: Hosted) -> None:
    """Of a run whose results have expired, the steps are known by name, and the rest is said to be missing."""
    await hosted.ask("helper", script(calls(("version", {})), "done"))
    run_id = (await last_run(hosted, "helper"))["run_id"]
    view = AgentRunView(hosted.daemon.store, lambda: hosted.daemon.settings)
    record = await view.record(LOCAL, run_id)
    gone = [replace(entry, state="expired", result=None) for entry in record.entries]
    run = read_run(gone)
    assert run.missing == ("snapshot", "t1", "t2")
    assert run.answer is None
    assert "24 h" in view.kept
