"""Scripted tools, and calls of them without a daemon."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.tools.orchestration.pipeline_steps import Run, shape
from toold.protocol.error_codes import (
    CallError,
    ToolNotFoundError,
)
from toold.protocol.tool_call import Annotations, Metadata, PartsOutcome, TextContent, Timings, ToolResult
from toold.tools import Arguments, Tool
from toold.tools.orchestration.call_retry import RetryPolicy
from toold.tools.orchestration.execute_pipeline import PipelineArguments
from toold.tools.orchestration.pipeline_run import PipelineRun
from toold.tools.orchestration.pipeline_validation import plan_pipeline
from toold.tools.orchestration.step_run import StepRunner


class Get(Arguments):
    """The arguments of ``get``."""

    path: str
    limit: int = 10


class Anything(Arguments):
    """The arguments of ``put`` and ``note``."""

    value: Any = None


async def nothing(arguments: Any, context: Any) -> None:
    """Do nothing: ``Calls`` answers the calls instead."""


def made(name: str, arguments: type[Arguments], *, read_only: bool) -> Tool:
    """A tool with this name."""
    annotations = Annotations(
        read_only_hint=read_only, destructive_hint=False, idempotent_hint=False, open_world_hint=True
    )
    return Tool(name, f"The tool {name}.", arguments, nothing, annotations)


TOOLS = {
    "get": made("get", Get, read_only=True),
    "put": made("put", Anything, read_only=False),
    "note": made("note", Anything, read_only=True),
}


def find_tool(name: str) -> Tool:
    """Return one of the three tools."""
    if name not in TOOLS:
        raise ToolNotFoundError(f"There is no tool {name!r}; did you mean 'get'?")
    return TOOLS[name]


def result_of(value: Any) -> ToolResult:
    """A result with this data, or with this text if it is a string; or the given result."""
    if isinstance(value, ToolResult):
        return value
    metadata = Metadata(1.0, Timings())
    if isinstance(value, str):
        return ToolResult(metadata, (TextContent(value),))
    return ToolResult(metadata, (TextContent("data"),), value)


def report_of(outcome: Any, answer: Any) -> ToolResult:
    """The result of a call that reports on its parts, with this outcome."""
    return ToolResult(Metadata(1.0, Timings(), parts=PartsOutcome(outcome, "step 'x' failed")), (), answer)


def failure(error: CallError, *, repeatable: bool = False) -> ToolResult:
    """The result of a failed call."""
    return ToolResult(Metadata(1.0, Timings()), error=error.to_tool_error(repeatable=repeatable))


@dataclass
class Calls:
    """Records calls and answers them with ``answers``, by tool name. The test controls the time."""

    answers: dict[str, Callable[[Mapping[str, Any]], Any]] = field(default_factory=dict)
    made: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """The name, tool and arguments of each call."""
    kept: dict[str, ToolResult] = field(default_factory=dict)
    """The results of earlier runs by call name."""
    retry_unknown: bool = False
    timeouts: list[float | None] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    left_s: float = 100.0

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.made]

    async def call(
        self, tool: str, arguments: Mapping[str, Any], *, name: str, timeout_s: float | None = None
    ) -> ToolResult:
        self.made.append((name, tool, dict(arguments)))
        self.timeouts.append(timeout_s)
        if name in self.kept:
            return self.kept[name]
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(0)
            answer = self.answers.get(tool, dict)(arguments)
            if asyncio.isfuture(answer) or asyncio.iscoroutine(answer):
                answer = await answer
            return result_of(answer)
        except CallError as error:
            return failure(error, repeatable=TOOLS[tool].repeatable)
        finally:
            self.at_once -= 1

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.left_s -= seconds

    def left(self) -> float:
        return max(0.0, self.left_s)

    @property
    def retrying(self) -> RetryPolicy:
        return RetryPolicy(
            call=self.call, left=self.left, sleep=self.sleep, retry_unknown=self.retry_unknown, draw=lambda: 1.0
        )


@pytest.fixture
def calls() -> Calls:
    """Calls whose results are empty objects unless the test sets ``answers``."""
    return Calls()


@pytest.fixture
def report() -> Callable[[Any, Any], ToolResult]:
    """Return the function that makes the result of a call that reports on its parts: outcome, answer."""
    return report_of


@pytest.fixture
def tools() -> Callable[[str], Tool]:
    """Return the function that finds a tool: ``get`` and ``note`` are read-only, ``put`` writes."""
    return find_tool


@pytest.fixture
def run(calls: Any, tools: Any, reports: list[str]) -> Run:
    """Return a function that runs steps and returns the report."""

    async def run(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
        arguments = PipelineArguments.model_validate({"steps": list(steps), **more})
        plan = plan_pipeline(arguments, tools, {"input": arguments.input})
        runner = StepRunner(calls.retrying, shape, plan.partially_used_names)
        pipeline = PipelineRun(
            plan,
            runner,
            input=arguments.input,
            left=calls.left,
            report=lambda message, done, total: reports.append(f"{message} ({done:.0f}/{total:.0f})"),
        )
        return await pipeline.run()

    return run


@pytest.fixture
def reports() -> list[str]:
    """The progress that the run reported."""
    return []
