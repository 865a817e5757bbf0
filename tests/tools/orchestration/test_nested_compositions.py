"""Compositions of compositions, in a daemon with its real store: the outer one reports what the inner one did."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest


@pytest.fixture
async def served(serve: Any, workspace: Path) -> Any:
    """A daemon in this process with its client; its tool ``sim_effect`` writes lines."""
    return await serve(workspace, TOOLD_SIMULATE="true", KIMI_API_KEY="", GLM_API_KEY="")


def lines(tmp_path: Path, text: str) -> int:
    """How often ``sim_effect`` wrote this text."""
    return (tmp_path / "state" / "sim_effect.log").read_text().splitlines().count(text)


def write(text: str, **more: Any) -> dict[str, Any]:
    return {"tool_name": "sim_effect", "args": {"text": text, **more}}


def failing(text: str, allowed: str = "") -> list[dict[str, Any]]:
    """Steps that write, and then fail unless ``allowed`` is a model."""
    ask = {"tool_name": "chat", "args": {"prompt": "x", "model": allowed or "nobody"}}
    return [{"id": "write", **write(text)}, {"id": "ask", **ask, "when": "write IS_NOT_NULL"}]


async def call(served: Any, name: str, **arguments: Any) -> Any:
    return (await served.client.call(name, arguments)).structured


@pytest.mark.parametrize("through", ["execute_pipeline", "execute_tool"])
async def test_a_failed_pipeline_in_a_pipeline_is_resumed_and_repeats_nothing(
    served: Any, tmp_path: Path, through: str
) -> None:
    """The outer step fails with the inner answer; the outer run resumes the inner one, whose write stays single."""
    text = uuid4().hex

    def outer(**inner: Any) -> dict[str, Any]:
        step = {"tool_name": "execute_pipeline", "args": inner}
        if through == "execute_tool":
            step = {"tool_name": "execute_tool", "args": {"tool_name": "execute_pipeline", "args": inner}}
        return {
            "steps": [{"id": "inner", **step}, {"id": "last", **write(f"{text}-last"), "when": "inner IS_NOT_NULL"}]
        }

    failed = await call(served, "execute_pipeline", **outer(steps=failing(text)))
    inner = failed["step_results"]["inner"]
    assert (failed["success"], inner["state"], inner["error"]["code"]) == (False, "failed", "TOOL_EXECUTION_ERROR")
    assert inner["error"]["details"]["answer"]["step_results"]["write"]["state"] == "succeeded"
    assert failed["step_results"]["last"]["state"] == "not_run"
    again = await call(served, "execute_pipeline", **outer(steps=failing(text, "kimi-k3")), resume=failed["run_id"])
    assert (again["success"], again["step_results"]["inner"]["state"]) == (True, "succeeded")
    assert (lines(tmp_path, text), lines(tmp_path, f"{text}-last")) == (1, 1)


async def test_a_batch_of_batches_counts_what_was_cut_off_as_unknown(served: Any) -> None:
    """Each inner batch has a write that was interrupted at the deadline, so each item is unknown."""
    inner = {"tool_name": "sim_effect", "items": [{"text": uuid4().hex, "delay_ms": 60_000}], "timeout_s": 0.5}
    answer = await call(served, "execute_batch", tool_name="execute_batch", items=[inner] * 3)
    assert [answer[name] for name in ("succeeded", "failed", "unknown")] == [0, 0, 3]
    details = [one["error"]["details"]["answer"]["unknown"] for one in answer["errors"]]
    assert (details, {one["error"]["code"] for one in answer["errors"]}) == ([1] * 3, {"OUTCOME_UNKNOWN"})
    outer = {"steps": [{"id": "a", "tool_name": "execute_batch", "args": inner}]}
    answer = await call(served, "execute_pipeline", **outer)
    assert (answer["success"], answer["step_results"]["a"]["state"]) == (False, "unknown")


async def test_a_detached_pipeline_is_resumed_by_either_id(served: Any, tmp_path: Path) -> None:
    """``activity`` shows the id of the call that started it and its own: both name the run, whose write runs once."""
    text = uuid4().hex
    steps = failing(text)
    accepted = (await call(served, "execute_pipeline", steps=steps, detach=True))["call_id"]
    sessions = (await call(served, "activity"))["sessions"]
    await ended(served, accepted)
    ids = {row["id"] for one in sessions for row in one["calls"] if row["tool"] == "execute_pipeline"}
    assert (len(ids), accepted in ids) == (2, True)
    for call_id in ids:
        again = await call(served, "execute_pipeline", steps=steps, resume=call_id)
        assert again["step_results"]["write"]["replayed"]
    further = (await call(served, "execute_pipeline", steps=steps, resume=ids.pop(), detach=True))["call_id"]
    await ended(served, further)
    assert lines(tmp_path, text) == 1


async def ended(served: Any, call_id: str) -> None:
    """Wait until a detached call has ended."""
    async with asyncio.timeout(60):
        while (await call(served, "call_status", call_id=call_id))["state"] != "done":
            await asyncio.sleep(0.01)
