"""The steps of the demo detect a daemon that answers wrongly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli.demo_agent import DemoAgentRun
from toold.cli.demo_tour import TourStep, TourStepError, tour_steps
from toold.client import MCPWebSocketClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.cli.conftest import StubDaemon


STEPS = tour_steps("README.md")
FAILURES = [
    "hello",
    "the tools are",
    "returned as None",
    "the 0 chunks",
    "after a call|swapped",
    "returned a result",
    "returned a result",
    "reported no progress",
    "status is None",
]


def answer_nothing(call: dict[str, Any], send: Callable[..., None]) -> None:
    metadata = {"latency_ms": 0, "timings": {}}
    send("call_tool_res", request_id=call["request_id"], outputs=[], error=None, structured=None, metadata=metadata)


@pytest.mark.parametrize(
    ("step", "failure"), list(zip(STEPS, FAILURES, strict=True)), ids=[step.title for step in STEPS]
)
def test_each_step_fails_on_an_unexpected_result(daemon: StubDaemon, step: TourStep, failure: str) -> None:
    """A daemon that answers every call with an empty result passes no step."""
    daemon.on_call = answer_nothing

    with pytest.raises(TourStepError, match=failure):
        asyncio.run(with_client(step.run))


@pytest.mark.parametrize(
    ("step", "failure"),
    [
        (DemoAgentRun.begin, "the run did not pause: None"),
        (DemoAgentRun.approve, "the status of the run is None"),
        (DemoAgentRun.finish, "the status of the run is None"),
    ],
)
def test_each_step_with_the_agent_fails_on_an_unexpected_result(
    daemon: StubDaemon, tmp_path: Path, step: Callable[[DemoAgentRun, MCPWebSocketClient], Any], failure: str
) -> None:
    """A daemon that answers every call with an empty result passes none of them either."""
    daemon.on_call = answer_nothing
    with pytest.raises(TourStepError, match=failure):
        asyncio.run(with_client(lambda client: step(DemoAgentRun(tmp_path / "notes"), client)))


def test_a_repeated_write_fails_the_tour(daemon: StubDaemon, tmp_path: Path) -> None:
    """The run ended with its answer, but the note was written twice."""
    (tmp_path / "notes").write_text("The lamp is for Ada.\n" * 2)
    answer = {"state": "done", "result": {"answer": "The note is written.", "turns": 2}}
    metadata = {"latency_ms": 0, "timings": {}}
    daemon.on_call = lambda call, send: send(
        "call_tool_res", request_id=call["request_id"], outputs=[], error=None, structured=answer, metadata=metadata
    )
    with pytest.raises(TourStepError, match="instead of one note"):
        asyncio.run(with_client(DemoAgentRun(tmp_path / "notes").finish))


async def with_client(step: Callable[[MCPWebSocketClient], Awaitable[str]]) -> str:
    async with MCPWebSocketClient() as client:
        return await step(client)
