"""The events of live pages."""

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
        self.calls: dict[str, dict[str, str]] = {}
        self.failing: set[Viewer] = set()
        self.failures = 0

    def __call__(self, viewer: Viewer, call_id: str | None) -> dict[str, str] | None:
        if viewer in self.failing:
            self.failures += 1
            raise RuntimeError("rendering failed")
        if call_id is None:
            return {"html": self.text}
        return self.calls.get(call_id)


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


async def test_the_page_of_a_call_gets_what_has_changed_until_the_end() -> None:
    """An event is sent again only with other data; ``ended`` is the last one, and completes the stream."""
    rendering, activity = Rendering(), LiveActivity()
    rendering.calls["c"] = {"html": "<p>\n  half</p>", "calls": "c c/1"}
    feed = LiveFeed(activity, rendering, lambda _: True, nothing)
    received: list[bytes] = []

    async def read() -> None:
        async for events in feed.events(GUEST, "c"):
            received.append(events)  # noqa: PERF401 - while it is read

    async with asyncio.TaskGroup() as reading:
        reading.create_task(read())
        await until(lambda: bool(received))
        assert received[0] == b"event: html\ndata: <p> half</p>\n\nevent: calls\ndata: c c/1\n\n"
        assert not activity.watched  # only the page Now counts calls
        rendering.calls["c"] = {"html": "<p>\n  half</p>", "calls": "c"}
        await until(lambda: len(received) > 1)
        del rendering.calls["c"]
    assert received[1:] == [b"event: calls\ndata: c\n\n", b"event: ended\ndata: \n\n"]
    assert repr(feed) == "<LiveFeed pages=0>"


async def test_the_page_of_a_call_that_does_not_run_ends_at_once() -> None:
    """Also if it is not the viewer's: the answer is the same."""
    feed = LiveFeed(LiveActivity(), Rendering(), lambda _: True, nothing)
    assert [events async for events in feed.events(GUEST, "other")] == [b"event: ended\ndata: \n\n"]
