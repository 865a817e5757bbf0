"""Result files as calls use them: results and errors."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from toold.daemon.persistence.result_files import ResultFiles, open_results
from toold.protocol.error_codes import CallError, NotFoundError, ResultExpiredError, ResultTooLargeError
from toold.protocol.tool_call import LOCAL, Principal
from toold.tools import ResultFormat

ROWS: list[Any] = [{"id": 1, "name": "Ann"}, {"id": 2, "name": None}]


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultFiles]:
    results = open_results(tmp_path / "results", ttl_s=3600, max_bytes=1000)
    yield results
    results.close()


@pytest.mark.parametrize("file_format", ["json", "ndjson", "csv"])
async def test_rows_are_read_back_unchanged(results: ResultFiles, file_format: ResultFormat) -> None:
    """Rows are read back in every format; keeping them returns the handle, count, size and expiry."""
    stored = await results.keep(LOCAL, "e-1", {"rows": ROWS}, ROWS, file_format)
    assert (stored.handle, stored.count, stored.format) == ("e-1", 2, file_format)
    assert stored.bytes > 10
    assert stored.expires.endswith("Z")
    assert await results.read(LOCAL, "e-1") == ROWS


async def test_value_is_read_back_unchanged(results: ResultFiles) -> None:
    """A result without rows is read back as it is."""
    for value in ({"a": [1, None]}, "text", 5, None):
        assert (await results.keep(LOCAL, "e-1", value, None, "json")).count == 1
        assert await results.read(LOCAL, "e-1") == value


async def test_unknown_and_deleted_results_are_distinguished(results: ResultFiles) -> None:
    """An expired result has a different error than an unknown one or another principal's."""
    await results.keep(LOCAL, "e-1", 1, None, "json")
    with pytest.raises(NotFoundError):
        await results.read(LOCAL, "e-2")
    with pytest.raises(NotFoundError):
        await results.read(Principal("somebody"), "e-1")
    results.apply(ttl_s=-1, max_bytes=1000)
    with pytest.raises(ResultExpiredError):
        await results.read(LOCAL, "e-1")


async def test_result_beyond_the_size_limit_is_refused(results: ResultFiles) -> None:
    """The error has the limit and the setting that raises it."""
    with pytest.raises(ResultTooLargeError, match=r"1,000 bytes .* retained_results_keep_bytes"):
        await results.keep(LOCAL, "e-1", "x" * 1001, None, "json")


async def test_disk_error_does_not_show_the_path(tmp_path: Path) -> None:
    """The error has the reason and not the path."""
    (tmp_path / "results").write_text("no directory")
    results = open_results(tmp_path / "results", ttl_s=60, max_bytes=1000)
    with pytest.raises(CallError) as caught:
        await results.keep(LOCAL, "e-1", 1, None, "json")
    assert (caught.value.code, str(tmp_path) in caught.value.message) == ("SERVICE_UNAVAILABLE", False)
    results.close()


async def test_damaged_file_is_reported(results: ResultFiles, tmp_path: Path) -> None:
    """A damaged file is an error that is not retryable."""
    await results.keep(LOCAL, "e-1", ROWS, ROWS, "json")
    (tmp_path / "results" / "local" / "e-1.json").write_text('[{"id":')
    with pytest.raises(CallError, match="damaged") as caught:
        await results.read(LOCAL, "e-1")
    assert not caught.value.retryable


async def test_expired_results_are_deleted_periodically(
    results: ResultFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expired results are deleted while the daemon runs."""
    monkeypatch.setattr("toold.daemon.persistence.result_files.DELETE_INTERVAL_S", 0.001)
    await results.keep(LOCAL, "e-1", 1, None, "json")
    results.apply(ttl_s=-1, max_bytes=1000)
    tidying = asyncio.create_task(results.run())
    async with asyncio.timeout(20):
        while (tmp_path / "results" / "local" / "e-1.json").exists():
            await asyncio.sleep(0.001)
    tidying.cancel()
