"""The live pages while rendering fails."""

import asyncio
from typing import Any

import pytest
from tests.waiting import until
from toold.daemon.observability.live_activity import LiveActivity
from toold.daemon.transports.dashboard import LiveFeed, Viewer
from toold.protocol.authorization import Authorization
from toold.protocol.tool_call import LOCAL, Principal

OPERATOR = Viewer(Authorization(LOCAL), "1")
GUEST = Viewer(Authorization(Principal("guest")), "2")


class Rendering:
    """What pages show; fails for the viewers that ``failing`` has."""

    def __init__(self) -> None:
        self.text = "one"
        self.failing: set[Viewer] = set()
        self.failures = 0

    def __call__(self, viewer: Viewer) -> str:
        if viewer in self.failing:
            self.failures += 1
            raise RuntimeError("rendering failed")
        return self.text


async def nothing(_: Viewer) -> list[dict[str, Any]]:
    """No call ended earlier."""
    return []


async def test_a_failed_rendering_does_not_end_the_feed() -> None:
    """Other viewers' pages still change meanwhile, and the page that failed changes again afterwards."""
    rendering = Rendering()
    feed = LiveFeed(LiveActivity(), rendering, lambda _: True, nothing)
    received: dict[Viewer, bytes] = {OPERATOR: b"", GUEST: b""}

    async def read(viewer: Viewer) -> None:
        async for events in feed.events(viewer):
            received[viewer] += events

    async with asyncio.TaskGroup() as reading:
        for viewer in received:
            reading.create_task(read(viewer))
        await until(lambda: all(b"data: one" in events for events in received.values()))
        rendering.failing.add(OPERATOR)
        await until(lambda: rendering.failures > 1)
        rendering.text = "two"
        await until(lambda: b"data: two" in received[GUEST])
        assert b"data: two" not in received[OPERATOR]
        rendering.failing.clear()
        await until(lambda: b"data: two" in received[OPERATOR])
        feed.close()


async def test_a_page_whose_first_rendering_fails_is_forgotten() -> None:
    """It counts neither as an open page nor as a watcher."""
    rendering = Rendering()
    rendering.failing.add(OPERATOR)
    activity = LiveActivity()
    feed = LiveFeed(activity, rendering, lambda _: True, nothing)
    with pytest.raises(RuntimeError):
        await anext(feed.events(OPERATOR))
    assert repr(feed) == "<LiveFeed pages=0>"
    assert not activity.watched
