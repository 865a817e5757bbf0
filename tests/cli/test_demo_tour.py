"""The stops of the demo notice a daemon that does not do what they say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli.demo_tour import StopFailedError, TourStop, stops
from toold.client import MCPWebSocketClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import StubDaemon


STOPS = stops("README.md")
SEEN = [
    "hello",
    "the tools are",
    "came back as None",
    "0 pieces",
    "after a call|mixed up",
    "with a result",
    "with a result",
    "did not report",
    "status is None",
]


def answer_nothing(call: dict[str, Any], send: Callable[..., None]) -> None:
    metadata = {"latency_ms": 0, "timings": {}}
    send("call_tool_res", request_id=call["request_id"], outputs=[], error=None, structured=None, metadata=metadata)


@pytest.mark.parametrize(("stop", "saw"), list(zip(STOPS, SEEN, strict=True)), ids=[stop.title for stop in STOPS])
def test_each_stop_fails_where_it_does_not_see_what_it_says(daemon: StubDaemon, stop: TourStop, saw: str) -> None:
    """A daemon that answers every call with nothing passes no stop."""
    daemon.on_call = answer_nothing

    async def visit() -> str:
        async with MCPWebSocketClient() as client:
            return await stop.visit(client)

    with pytest.raises(StopFailedError, match=saw):
        asyncio.run(visit())
