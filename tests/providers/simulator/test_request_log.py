"""The log of requests and the planned directives for the next requests."""

from toold.providers.simulator.directives import Directives
from toold.providers.simulator.request_log import LOG_SIZE, LoggedRequest, RequestLog


async def test_running_requests_and_peaks_are_counted_per_vendor() -> None:
    """Running requests and their peak are counted per vendor, and the log is bounded."""
    census = RequestLog()
    async with census.serving(LoggedRequest("kimi", {}, {})), census.serving(LoggedRequest("kimi", {}, {}, "files")):
        assert (census.running["kimi"], census.running["glm"]) == (2, 0)
    assert (census.running["kimi"], census.peaks["kimi"]) == (0, 2)
    for _ in range(LOG_SIZE):
        async with census.serving(LoggedRequest("glm", {}, {})):
            pass
    assert {seen.vendor for seen in census.log} == {"glm"}


def test_planned_directives_apply_once() -> None:
    """Planned directives apply in order, each to one request of its vendor and operation."""
    census = RequestLog()
    first, second = Directives(hang=True), Directives(status=500)
    census.plan("kimi", "files", first)
    census.plan("kimi", "files", second)
    assert census.planned("glm", "files") is None
    assert census.planned("kimi", "chat") is None
    assert census.planned("kimi", "files") is first
    assert census.planned("kimi", "files") is second
    assert census.planned("kimi", "files") is None


async def test_until_returns_at_once_if_the_number_is_reached() -> None:
    """Waiting for a number of running requests returns at once if that number already runs."""
    census = RequestLog()
    async with census.serving(LoggedRequest("kimi", {}, {})):
        await census.until("kimi", 1)
    await census.until("kimi", 0)
