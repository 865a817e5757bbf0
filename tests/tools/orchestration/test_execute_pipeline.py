"""Planning of ``execute_pipeline``: on the event loop or in a thread."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools.orchestration.execute_pipeline import PipelineArguments, plan_for


@pytest.mark.parametrize(("times", "on_loop"), [(1, True), (20_000, False)])
async def test_a_large_pipeline_is_planned_in_a_thread(tools: Any, times: int, on_loop: bool) -> None:
    """Large templates do not block the event loop; errors are raised from the thread too."""
    threads: list[threading.Thread] = []

    def find_tool(name: str) -> Any:
        threads.append(threading.current_thread())
        return tools(name)

    context: Any = SimpleNamespace(find_tool=find_tool)
    steps = [{"id": "a", "tool_name": "note", "args": {"value": "{{input.x}}" * times}}]
    given = {"steps": steps, "input": {"x": 1}}
    plan = await plan_for(PipelineArguments.model_validate(given), context, {"input": {"x": 1}})
    assert [step.id for step in plan.steps] == ["a"]
    assert (threads[0] is threading.main_thread()) is on_loop
    steps[0]["id"] = "input"
    with pytest.raises(InvalidArgumentsError, match="is a reserved name"):
        await plan_for(PipelineArguments.model_validate(given), context, {"input": {"x": 1}})
