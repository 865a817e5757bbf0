"""The log of requests and the planned directives for the next requests."""

from toold.providers.simulator.directives import Directives
from toold.providers.simulator.request_log import LOG_SIZE, LoggedRequest, RequestLog


async def test_running_requests_and_peaks_are_counted_per_vendor() -> None:
    """Running requests and their peak are counted per vendor, and the log is bounded."""
    request_log = RequestLog()
    async with (
        request_log.serving(LoggedRequest("kimi", {}, {})),
        request_log.serving(LoggedRequest("kimi", {}, {}, "files")),
    ):
        assert (request_log.running["kimi"], request_log.running["glm"]) == (2, 0)
    assert (request_log.running["kimi"], request_log.peaks["kimi"]) == (0, 2)
    for _ in range(LOG_SIZE):
        async with request_log.serving(LoggedRequest("glm", {}, {})):
            pass
    assert {seen.vendor for seen in request_log.log} == {"glm"}


def test_planned_directives_apply_once() -> None:
    """Planned directives apply in order, each to one request of its vendor and operation."""
    request_log = RequestLog()
    first, second = Directives(hang=True), Directives(status=500)
    request_log.plan("kimi", "files", first)
    request_log.plan("kimi", "files", second)
    assert request_log.planned("glm", "files") is None
    assert request_log.planned("kimi", "chat") is None
    assert request_log.planned("kimi", "files") is first
    assert request_log.planned("kimi", "files") is second
    assert request_log.planned("kimi", "files") is None


async def test_until_returns_at_once_if_the_number_is_reached() -> None:
    """Waiting for a number of running requests returns at once if that number already runs."""
    request_log = RequestLog()
    async with request_log.serving(LoggedRequest("kimi", {}, {})):
        await request_log.until("kimi", 1)
    await request_log.until("kimi", 0)
