"""What is remembered of requests, and laid out for the next ones."""

from toold.providers.simulator.directives import Directives
from toold.providers.simulator.request_log import LOG_SIZE, LoggedRequest, RequestLog


async def test_requests_are_counted_while_they_run() -> None:
    """Now and at most, by vendor; the log is bounded."""
    census = RequestLog()
    async with census.serving(LoggedRequest("kimi", {}, {})), census.serving(LoggedRequest("kimi", {}, {}, "files")):
        assert (census.running["kimi"], census.running["glm"]) == (2, 0)
    assert (census.running["kimi"], census.peaks["kimi"]) == (0, 2)
    for _ in range(LOG_SIZE):
        async with census.serving(LoggedRequest("glm", {}, {})):
            pass
    assert {seen.vendor for seen in census.log} == {"glm"}


def test_what_is_planned_is_met_once() -> None:
    """By the next request of its kind alone, in order."""
    census = RequestLog()
    first, second = Directives(hang=True), Directives(status=500)
    census.plan("kimi", "files", first)
    census.plan("kimi", "files", second)
    assert census.planned("glm", "files") is None
    assert census.planned("kimi", "chat") is None
    assert census.planned("kimi", "files") is first
    assert census.planned("kimi", "files") is second
    assert census.planned("kimi", "files") is None


async def test_a_number_of_running_requests_can_be_waited_for() -> None:
    """At once, where it is so already."""
    census = RequestLog()
    async with census.serving(LoggedRequest("kimi", {}, {})):
        await census.until("kimi", 1)
    await census.until("kimi", 0)
