"""Pipelines and batches on a running daemon: resumed, interrupted, cancelled, counted."""

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.waiting import until


def effects(daemon: Any, mark: str) -> list[str]:
    """The written lines with this mark."""
    log: Path = daemon.state / "sim_effect.log"
    return [line for line in log.read_text().splitlines() if mark in line] if log.exists() else []


def five_steps(mark: str) -> list[dict[str, Any]]:
    return [
        {"id": "models", "tool_name": "listmodels", "args": {}, "options": {"at": "models", "limit": 2}},
        {"id": "note", "tool_name": "sim_effect", "args": {"text": f"{mark} {{{{models[0].id}}}}"}},
        {"id": "ask", "tool_name": "chat", "args": {"prompt": "{{input.question}} {{note}}"}},
        {"id": "keep", "tool_name": "sim_effect", "args": {"text": f"{mark} {{{{ask.model}}}}"}},
        {"id": "say", "tool_name": "echo", "args": {"value": {"first": "{{models[0].id}}", "kept": "{{keep}}"}}},
    ]


async def test_a_failed_pipeline_resumes(daemon: Any, caller: Any) -> None:
    """Completed steps are reported and not repeated; the failed step runs with the fix, followed by the rest."""
    mark = uuid4().hex
    steps = five_steps(mark)
    failed = await caller.call(f"{mark}-1", "execute_pipeline", steps=steps, input={"question": "[[sim:status=400]]"})
    done = failed["structured"]
    assert failed["error"] is None
    assert (done["success"], done["steps_completed"], done["total_steps"]) == (False, 2, 5)
    assert [step["state"] for step in done["step_results"].values()] == [
        *("succeeded", "succeeded", "failed", "not_run", "not_run")
    ]
    assert done["step_results"]["ask"]["error"]["code"] == "PROVIDER_ERROR"
    assert len(effects(daemon, mark)) == 1

    repeat = {"steps": steps, "input": {"question": "Hello."}, "resume": done["run_id"]}
    finished = (await caller.call(f"{mark}-2", "execute_pipeline", **repeat))["structured"]
    assert (finished["success"], finished["steps_completed"]) == (True, 5)
    assert finished["step_results"]["note"]["replayed"] is True
    assert finished["step_results"]["ask"]["attempts"] == 2
    assert finished["result"]["kept"].startswith(f"written: {mark}")
    assert len(effects(daemon, mark)) == 2

    # A third run has nothing left to do, from either earlier run.
    repeat["resume"] = finished["run_id"]
    third = (await caller.call(f"{mark}-3", "execute_pipeline", **repeat))["structured"]
    assert (third["success"], third["result"]) == (True, finished["result"])
    assert len(effects(daemon, mark)) == 2


async def test_a_pipelines_usage_includes_its_steps(caller: Any) -> None:
    """The completions of steps count for the pipeline."""
    steps = [{"id": name, "tool_name": "chat", "args": {"prompt": "Hello."}} for name in ("a", "b")]
    answer = await caller.call(uuid4().hex, "execute_pipeline", steps=steps)
    assert answer["metadata"]["provider_calls"] == 2
    assert answer["metadata"]["usage"]["output_tokens"] > 0


async def test_a_pipeline_is_validated_before_it_runs(daemon: Any, caller: Any) -> None:
    """One error lists unknown tools, wrong arguments and cycles, and nothing runs."""
    mark = uuid4().hex
    steps = [
        {"id": "a", "tool_name": "sim_effect", "args": {"text": mark}},
        {"id": "b", "tool_name": "sim_efect", "args": {}},
        {"id": "c", "tool_name": "sim_effect", "args": {"delay_ms": "{{c}}"}},
    ]
    answer = await caller.call(mark, "execute_pipeline", steps=steps)
    assert answer["error"]["code"] == "VALIDATION_ERROR"
    assert answer["error"]["executed"] == "no"
    assert answer["error"]["details"]["fields"].keys() == {"steps.1.tool_name", "steps.2.args.text", "steps.2"}
    assert "did you mean 'sim_effect'" in answer["error"]["message"]
    dry = await caller.call(f"{mark}-2", "execute_pipeline", steps=steps[:1], dry_run=True)
    assert dry["structured"]["order"] == [["a"]]
    assert effects(daemon, mark) == []


async def test_a_run_outlives_a_kill(start_daemon: Any) -> None:
    """Ended steps are not repeated, and the interrupted write is unknown until the caller requests a retry."""
    first = start_daemon()
    steps = [
        {"id": "one", "tool_name": "sim_effect", "args": {"text": "one"}},
        {"id": "two", "tool_name": "sim_effect", "args": {"text": "two {{one}}", "delay_ms": "{{input.delay}}"}},
        {"id": "three", "tool_name": "sim_effect", "args": {"text": "three {{two}}"}},
    ]
    async with first.peer(features=["ack"]) as peer:
        await peer.send(
            op="call_tool",
            request_id="p",
            name="execute_pipeline",
            arguments={"steps": steps, "input": {"delay": 300_000}},
        )
        reported = await peer.until("progress", "p")
        run = reported["message"].removeprefix("run ")
        await until(lambda: len(effects(first, "")) == 2)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()

    second = start_daemon()
    resumed = {"steps": steps, "input": {"delay": 300_000}, "resume": run}
    async with second.peer() as peer:
        cut = (await peer.call("p2", "execute_pipeline", **resumed))["structured"]
        assert [step["state"] for step in cut["step_results"].values()] == ["succeeded", "unknown", "not_run"]
        assert "on_unknown" in cut["stop_reason"]
        assert len(effects(second, "")) == 2
        resumed |= {"on_unknown": "retry", "input": {"delay": 0}, "resume": cut["run_id"]}
        done = (await peer.call("p3", "execute_pipeline", **resumed))["structured"]
        assert done["success"] is True
    lines = [line.partition(" ")[0] for line in effects(second, "")]
    assert lines == ["one", "two", "two", "three"]
    assert second.stop() == 0


async def test_progress_names_the_step(daemon: Any) -> None:
    """Progress has the id of the run and of each step, with the number of ended steps."""
    steps = [
        {"id": "first", "tool_name": "echo", "args": {"value": 1, "delay_ms": 30}},
        {"id": "second", "tool_name": "echo", "args": {"value": "{{first}}", "delay_ms": 30}},
    ]
    async with daemon.peer(features=["ack"]) as peer:
        await peer.send(op="call_tool", request_id=1, name="execute_pipeline", arguments={"steps": steps})
        messages, frame = [], await peer.receive()
        while frame["op"] != "call_tool_res":
            if frame["op"] == "progress":
                messages.append((frame["message"], frame.get("done"), frame.get("total")))
            frame = await peer.receive()
    assert frame["structured"]["success"] is True
    assert any(message.startswith("second: ") and total == 2 for message, _, total in messages), messages


async def test_a_batch_reports_its_failures_by_index(daemon: Any, caller: Any) -> None:
    """Seven of a hundred items fail; the others have their effect once."""
    mark = uuid4().hex
    bad = {3, 14, 15, 26, 53, 58, 97}
    items = [{"text": f"{mark} {n}" if n not in bad else n} for n in range(100)]
    answer = await caller.call(mark, "execute_batch", tool_name="sim_effect", items=items, options={"concurrency": 10})
    done = answer["structured"]
    counts = [done[name] for name in ("total", "succeeded", "failed", "unknown", "skipped")]
    assert counts == [100, 93, 7, 0, 0]
    assert {error["index"] for error in done["errors"]} == bad
    assert {error["error"]["code"] for error in done["errors"]} == {"VALIDATION_ERROR"}
    assert sorted(effects(daemon, mark)) == sorted(f"{mark} {n}" for n in range(100) if n not in bad)


async def test_results_of_a_batch_are_shaped(caller: Any) -> None:
    """With ``detail`` each result has its index and the selected fields."""
    answer = await caller.call(
        uuid4().hex,
        "execute_batch",
        tool_name="echo",
        items=["x", "y"],
        args={"value": {"n": "{{index}}", "of": "{{item}}"}},
        options={"result_mode": "detail", "select_fields": ["of"]},
    )
    assert answer["structured"]["results"] == [
        {"index": 0, "result": {"of": "x"}},
        {"index": 1, "result": {"of": "y"}},
    ]


async def test_a_batch_at_its_deadline_reports_its_items(daemon: Any, caller: Any) -> None:
    """Interrupted writes are unknown, and the remaining items are skipped."""
    mark = uuid4().hex
    items = [{"text": mark, "delay_ms": 0 if n < 2 else 300_000} for n in range(6)]
    answer = await caller.call(
        mark, "execute_batch", tool_name="sim_effect", items=items, options={"concurrency": 2}, timeout_s=1
    )
    done = answer["structured"]
    assert (done["succeeded"], done["unknown"], done["skipped"]) == (2, 2, 2)
    assert len(effects(daemon, mark)) == 4


async def test_cancelling_skips_the_remaining_steps(daemon: Any, make_peer: Any) -> None:
    """In batches and pipelines running steps are interrupted, no further step starts, and completed ones are
    reported.
    """
    mark = uuid4().hex
    item = {"text": mark, "delay_ms": 300_000}
    pipeline = [
        {"id": "a", "tool_name": "sim_effect", "args": item},
        {"id": "b", "tool_name": "sim_effect", "args": {"text": f"{mark} {{{{a}}}}"}},
    ]
    batch = {"tool_name": "sim_effect", "items": [item] * 20, "options": {"concurrency": 2}}
    async with make_peer(features=["ack"]) as peer:
        for name, arguments in (("execute_batch", batch), ("execute_pipeline", {"steps": pipeline})):
            begun = len(effects(daemon, mark)) + (2 if name == "execute_batch" else 1)
            await peer.send(op="call_tool", request_id=name, name=name, arguments=arguments)
            await until(partial(lambda count: len(effects(daemon, mark)) == count, begun))
            await peer.send(op="cancel", request_id=name)
            answer = await peer.until("call_tool_res", name)
            assert answer["error"]["code"] == "CANCELLED"
            done = answer["error"]["details"]["so_far"]
            if name == "execute_batch":
                assert (done["unknown"], done["skipped"]) == (2, 18)
            else:
                assert [done["step_results"][step]["state"] for step in "ab"] == ["unknown", "not_run"]
            assert len(effects(daemon, mark)) == begun
        repeat = await peer.call(
            uuid4().hex, "execute_pipeline", steps=pipeline, resume=answer["error"]["details"]["run_id"]
        )
        assert repeat["structured"]["step_results"]["a"]["state"] == "unknown"


async def test_tools_are_found_and_described(caller: Any) -> None:
    """A search finds them by a few words, then their descriptions are complete."""
    result = (await caller.call(uuid4().hex, "search_tools", query="give back a text as it came"))["structured"]
    assert "echo" in [item["name"] for item in result[:3]]
    described = (await caller.call(uuid4().hex, "describe_tools", names=["echo"]))["structured"]
    assert "text" in described[0]["inputSchema"]["properties"]


async def test_a_step_can_retain_its_result(caller: Any) -> None:
    """The next step gets a handle and reads the result."""
    steps = [
        {
            "id": "all",
            "tool_name": "listmodels",
            "options": {"at": "models", "select_fields": ["id"], "return_mode": "file"},
        },
        {"id": "page", "tool_name": "read_result", "args": {"handle": "{{all.handle}}", "limit": 2}},
    ]
    done = (await caller.call(uuid4().hex, "execute_pipeline", steps=steps))["structured"]
    assert done["success"] is True, done
    assert done["step_results"]["all"]["result"]["count"] > 2
    assert len(done["result"]["rows"]) == 2
