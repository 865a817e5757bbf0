"""Failed steps of a pipeline: what they prevent, what replaces them, and when they are retried."""

import asyncio
from typing import Any

import pytest
from tests.tools.orchestration.pipeline_steps import Run, fails, step
from toold.protocol.error_codes import (
    CallTimeoutError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from toold.tools.orchestration.run_limits import ResultBudget


async def test_a_failed_step_prevents_further_steps(run: Run, calls: Any) -> None:
    """Concurrent steps finish, later steps do not run, and the report contains all of them."""
    gate = asyncio.Event()

    async def slowly() -> dict[str, Any]:
        await gate.wait()
        return {"ok": 1}

    def bad(arguments: Any) -> Any:
        gate.set()
        raise ToolExecutionError("broken", executed="no")

    calls.answers |= {"put": bad, "get": lambda _: slowly()}
    answer = await run(
        {"id": "independent", "tool_name": "get", "args": {"path": "x"}},
        step("bad", 1, "put"),
        step("after", "{{bad}}"),
    )
    results = answer["step_results"]
    assert answer["success"] is False
    assert answer["steps_completed"] == 1
    assert results["independent"]["result"] == {"ok": 1}
    assert (results["bad"]["success"], results["bad"]["state"]) == (False, "failed")
    assert results["bad"]["error"]["message"] == "broken"
    assert results["after"] == {"success": False, "state": "not_run", "duration_ms": 0.0, "attempts": 0}
    assert answer["stop_reason"] == "step 'bad' failed: broken"
    assert answer["result"] is None


async def test_an_interrupted_write_is_unknown(run: Run, calls: Any) -> None:
    """The state of the step is ``unknown`` instead of ``failed``."""
    calls.answers["put"] = fails(CallTimeoutError("cut off"))
    assert (await run(step("a", 1, "put")))["step_results"]["a"]["state"] == "unknown"


async def test_on_error_continue_runs_further_steps(run: Run, calls: Any) -> None:
    """The run succeeds although the step failed."""
    calls.answers["put"] = fails(ToolExecutionError("broken", executed="no"))
    answer = await run(step("a", 1, "put", on_error="continue"), step("b", "{{a | default('no')}}"))
    assert answer["success"] is True
    assert answer["steps_completed"] == 1
    assert answer["step_results"]["a"]["success"] is False
    assert calls.made[-1][2] == {"value": "no"}


async def test_on_error_fallback_replaces_the_result(run: Run, calls: Any) -> None:
    """The fallback may contain templates, and the report keeps the error."""
    calls.answers |= {
        "put": fails(ToolExecutionError("broken", executed="no")),
        "note": lambda arguments: {"got": arguments["value"]},
    }
    answer = await run(
        step("a", 1, "put", on_error="fallback", fallback={"n": "{{input.n}}"}), step("b", "{{a.n}}"), input={"n": 7}
    )
    assert answer["result"] == {"got": 7}
    a = answer["step_results"]["a"]
    assert (a["success"], a["state"], a["result"], a["error"]["message"]) == (True, "used_fallback", {"n": 7}, "broken")
    assert answer["steps_completed"] == 2


async def test_a_step_is_retried(run: Run, calls: Any) -> None:
    """A step is retried ``retry.max`` times; each attempt is a call with a unique name."""
    calls.answers["note"] = fails(ServiceUnavailableError("busy"))
    answer = await run(step("a", retry={"max": 2}))
    assert calls.names == ["a", "a#2", "a#3"]
    assert answer["step_results"]["a"]["attempts"] == 3


@pytest.mark.parametrize(("outcome", "code"), [("failed", "TOOL_EXECUTION_ERROR"), ("unknown", "OUTCOME_UNKNOWN")])
async def test_a_step_whose_parts_failed_has_failed(run: Run, calls: Any, report: Any, outcome: str, code: str) -> None:
    """An inner pipeline or batch that answers with failed or unknown parts stops the outer one, with its answer as the
    detail, and is not retried.
    """
    calls.answers["put"] = lambda _: report(outcome, {"success": False})
    answer = await run(step("a", tool="put", retry={"max": 3}), step("b", "{{a.success}}"))
    inner = answer["step_results"]["a"]
    assert (answer["success"], inner["state"], inner["error"]["code"]) == (False, outcome, code)
    assert inner["error"]["details"] == {"answer": {"success": False}}
    assert (answer["result"], calls.names) == (None, ["a"])
    assert "step 'x' failed" in answer["stop_reason"]


async def test_on_error_applies_to_a_step_whose_parts_failed(run: Run, calls: Any, report: Any) -> None:
    """With 'continue' later steps can use the inner answer, shaped, though the step failed; 'fallback' replaces it."""
    calls.answers["put"] = lambda _: report("failed", {"results": [1, 2]})
    calls.answers["note"] = lambda arguments: arguments["value"]
    answer = await run(
        step("a", tool="put", on_error="continue", options={"at": "results", "limit": 1}),
        step("b", tool="put", on_error="fallback", fallback="none"),
        step("c", tool="put", on_error="continue", for_each=[0, 1]),
        step("d", ["{{a}}", "{{b}}", "{{c}}"]),
    )
    assert answer["success"]
    assert answer["result"] == [[1], "none", [{"results": [1, 2]}] * 2]
    states = [answer["step_results"][name]["state"] for name in "abc"]
    assert states == ["failed", "used_fallback", "failed"]


async def test_details_of_errors_are_within_the_budget_of_results(
    run: Run, calls: Any, report: Any, monkeypatch: Any
) -> None:
    """Details that do not fit are omitted, and an answer that is too large for an error is cut."""
    monkeypatch.setattr("toold.tools.orchestration.step_run.ResultBudget", lambda: ResultBudget(100_000))
    calls.answers["put"] = lambda _: report("failed", {"success": False, "notes": "x" * 60_000, "result": "y" * 10_000})
    answer = await run(step("a", tool="put", for_each=[0, 1], on_error="continue", options={"at": "success"}))
    first, second = (one["error"] for one in answer["step_results"]["a"]["errors"])
    assert first["details"]["answer"].keys() == {"success", "notes"}
    assert "details" not in second
