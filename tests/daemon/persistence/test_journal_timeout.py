"""An answer waits for the disk until the write succeeds, fails or times out."""

import asyncio

from toold.daemon.persistence.journal_timeout import write_failure
from toold.store import StoreError


async def test_successful_write_returns_none() -> None:
    """A successful write has no failure."""
    assert await write_failure(asyncio.sleep(0)) is None


async def test_failed_write_returns_the_reason() -> None:
    """The reason of a failed write can be shown to clients."""

    async def refuse() -> None:
        raise StoreError("the database at /a/path cannot be written", "disk full")

    assert await write_failure(refuse()) == "disk full"


async def test_write_times_out() -> None:
    """A write that exceeds its timeout has the timeout in its reason."""
    assert await write_failure(asyncio.Event().wait(), 0.0) == "no response within 0 s"
