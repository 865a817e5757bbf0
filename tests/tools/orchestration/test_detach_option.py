"""Batches and pipelines that answer at once: their time, and what they are made with."""

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
    ],
)
def test_a_detached_call_may_take_a_day(given: dict[str, Any], seconds: float, wrong: bool) -> None:
    """Others have five minutes at most, and are told what detaching would give them."""
    arguments = DetachOption.model_validate(given)
    assert arguments.seconds == seconds
    assert [place for place, _ in arguments.timeout_problems] == (["timeout_s"] if wrong else [])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (execute_batch, {"tool_name": "get", "items": [{"path": "x"}]}),
        (execute_pipeline, {"steps": STEPS}),
    ],
    ids=["batch", "pipeline"],
)
async def test_both_answer_an_id_and_run_nothing_themselves(ready: Any, tool: Any, arguments: Any) -> None:
    """What is made apart has its time, and a little for its answer; a time that is too long is refused before."""
    assert await run(tool, ready, **arguments, detach=True) == {"call_id": "call-2", "detached": True}
    assert ready.detached_calls == [({}, 3605.0)]
    assert ready.called == []
    with pytest.raises(InvalidArgumentsError, match="timeout_s: should be at most 300, or with detach 86400, not 400"):
        await run(tool, ready, **arguments, timeout_s=400)


async def test_what_is_certain_to_be_wrong_is_told_before(ready: Any) -> None:
    """No call is made apart for it."""
    with pytest.raises(ToolNotFoundError):
        await run(execute_batch, ready, tool_name="nothing", items=[{}], detach=True)
    with pytest.raises(InvalidArgumentsError):
        await run(execute_pipeline, ready, steps=[*STEPS, *STEPS], detach=True)
    assert ready.detached_calls == []


async def test_the_items_of_a_handle_go_with_it(ready: Any) -> None:
    """What is kept may be gone before the call is: so the rows are its items."""
    ready.kept["h"] = [{"path": "x"}] * 200
    await run(execute_batch, ready, tool_name="get", items={"handle": "h"}, detach=True)
    ((changed, _),) = ready.detached_calls
    assert changed == {"items": [{"path": "x"}] * 200}


async def test_a_plan_is_answered_and_not_detached(ready: Any) -> None:
    """``dry_run`` runs nothing, here or elsewhere."""
    assert (await run(execute_pipeline, ready, steps=STEPS, dry_run=True, detach=True))["dry_run"] is True
    assert ready.detached_calls == []
