"""How long an answer waits for the disk: until it is there, refuses, or does not answer."""

import asyncio

import pytest
from toold.daemon.persistence import journal_timeout
from toold.daemon.persistence.journal_timeout import write_failure
from toold.store import StoreError


async def test_what_is_written_has_no_reason() -> None:
    """The disk took it."""
    assert await write_failure(asyncio.sleep(0)) is None


async def test_a_disk_that_refuses_says_why() -> None:
    """In the words that are fit for callers."""

    async def refuse() -> None:
        raise StoreError("the database at /a/path cannot be written", "disk full")

    assert await write_failure(refuse()) == "disk full"


async def test_a_disk_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the patience the wait ends, and the reason says how long that was."""
    monkeypatch.setattr(journal_timeout, "WRITE_TIMEOUT_S", 0.0)
    assert await write_failure(asyncio.Event().wait()) == "no response within 0 s"
