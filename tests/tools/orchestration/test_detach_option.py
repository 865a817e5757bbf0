"""Detached batches and pipelines: their timeouts and arguments."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ToolNotFoundError
from toold.tools import bind
from toold.tools.orchestration import execute_batch, execute_pipeline
from toold.tools.orchestration.detach_option import DetachOption

STEPS = [{"id": "one", "tool_name": "get", "args": {"path": "x"}}]


async def run(tool: Any, context: Any, **arguments: Any) -> Any:
    return await tool.function(bind(tool, arguments), context)


@pytest.fixture
def ready(context: Any, tools: Any) -> Any:
    """A context with the tools ``get`` and ``put``."""
    context.tools = {name: tools(name) for name in ("get", "put")}
    return context


@pytest.mark.parametrize(
    ("given", "seconds", "wrong"),
    [
        ({}, 120, False),
        ({"timeout_s": 300}, 300, False),
        ({"timeout_s": 301}, 301, True),
        ({"detach": True}, 3600, False),
        ({"detach": True, "timeout_s": 86_400}, 86_400, False),
        ({"timeout_ms": 60_000}, 60, False),
        ({"timeout_ms": 301_000}, 301, True),
        ({"detach": True, "timeout_ms": 3_600_000}, 3600, False),
    ],
)
def test_a_detached_call_may_take_one_day(given: dict[str, Any], seconds: float, wrong: bool) -> None:
    """Other calls are limited to five minutes."""
    arguments = DetachOption.model_validate(given)
    assert arguments.seconds == seconds
    assert [place for place, _ in arguments.timeout_problems] == (["timeout_s"] if wrong else [])


def test_a_timeout_is_set_once() -> None:
    """In seconds or in milliseconds; the schema names the seconds only."""
    both = DetachOption.model_validate({"timeout_s": 1, "timeout_ms": 1000})
    assert [place for place, _ in both.timeout_problems] == ["timeout_ms"]
    assert DetachOption.model_json_schema()["properties"].keys() == {"timeout_s", "detach"}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (execute_batch, {"tool_name": "get", "items": [{"path": "x"}]}),
        (execute_pipeline, {"steps": STEPS}),
    ],
    ids=["batch", "pipeline"],
)
async def test_a_detached_call_returns_an_id_and_runs_nothing_itself(ready: Any, tool: Any, arguments: Any) -> None:
    """The detached call gets the timeout plus time for its answer. A timeout that is too long is rejected."""
    assert await run(tool, ready, **arguments, detach=True) == {"call_id": "call-2", "detached": True}
    assert ready.detached_calls == [({}, 3605.0)]
    assert ready.called == []
    with pytest.raises(InvalidArgumentsError, match="timeout_s: should be at most 300, or with detach 86400, not 400"):
        await run(tool, ready, **arguments, timeout_s=400)


async def test_invalid_arguments_are_rejected_before_detaching(ready: Any) -> None:
    """No detached call is created."""
    with pytest.raises(ToolNotFoundError):
        await run(execute_batch, ready, tool_name="nothing", items=[{}], detach=True)
    with pytest.raises(InvalidArgumentsError):
        await run(execute_pipeline, ready, steps=[*STEPS, *STEPS], detach=True)
    assert ready.detached_calls == []


async def test_the_rows_of_a_handle_are_copied_to_the_detached_call(ready: Any) -> None:
    """The retained result may be deleted before the detached call runs, so its rows become the items."""
    ready.kept["h"] = [{"path": "x"}] * 200
    await run(execute_batch, ready, tool_name="get", items={"handle": "h"}, detach=True)
    ((changed, _),) = ready.detached_calls
    assert changed == {"items": [{"path": "x"}] * 200}


async def test_a_dry_run_is_not_detached(ready: Any) -> None:
    """``dry_run`` returns the plan and creates no detached call."""
    assert (await run(execute_pipeline, ready, steps=STEPS, dry_run=True, detach=True))["dry_run"] is True
    assert ready.detached_calls == []
