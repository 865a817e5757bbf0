"""Steps of pipelines for tests, and how their results are shaped."""

from collections.abc import Callable
from typing import Any

from toold.protocol.error_codes import (
    ServiceUnavailableError,
)
from toold.tools.orchestration.result_shaping import ResultShaping
from toold.tools.orchestration.step_run import ShapedPart


async def shape(shaping: ResultShaping, value: Any, name: str) -> ShapedPart:
    if shaping.to_file:
        raise ServiceUnavailableError(f"no room for {name}")
    shaped = shaping.plan.apply(value)
    return ShapedPart(shaped.value, shaped.report.unmatched, shaped.report.sentence)


Run = Callable[..., Any]


def step(id: str, value: Any = None, tool: str = "note", **more: Any) -> dict[str, Any]:  # noqa: A002 - the name of the field
    return {"id": id, "tool_name": tool, "args": {"value": value}, **more}


def fails(error: Exception) -> Callable[[Any], Any]:
    def answer(arguments: Any) -> Any:
        raise error

    return answer
