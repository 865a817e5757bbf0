"""The steps of the demo detect a daemon that answers wrongly."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli.demo_tour import TourStep, TourStepError, tour_steps
from toold.client import MCPWebSocketClient

if TYPE_CHECKING:
    from collections.abc import Callable

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

    async def run() -> str:
        async with MCPWebSocketClient() as client:
            return await step.run(client)

    with pytest.raises(TourStepError, match=failure):
        asyncio.run(run())
