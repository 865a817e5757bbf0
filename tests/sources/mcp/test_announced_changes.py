"""Announcements of changed lists."""

import asyncio

import pytest
from toold.sources.mcp import announced_changes
from toold.sources.mcp.announced_changes import AnnouncedChanges


async def test_a_storm_is_followed_at_a_limited_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first announcements at once, then one for all that come meanwhile."""
    monkeypatch.setattr(announced_changes, "LISTINGS_AT_ONCE", 3.0)
    monkeypatch.setattr(announced_changes, "LISTINGS_PER_S", 20.0)
    wake = asyncio.Event()
    changes = AnnouncedChanges(wake)
    followed = 0
    for _ in range(1000):
        changes.add()
        followed += wake.is_set()
        wake.clear()
    assert followed == 3
    await wake.wait()  # the last change is not forgotten
    changes.close()


async def test_nothing_is_due_after_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next session must not list because of this one."""
    monkeypatch.setattr(announced_changes, "LISTINGS_AT_ONCE", 0.0)
    monkeypatch.setattr(announced_changes, "LISTINGS_PER_S", 1000.0)
    wake = asyncio.Event()
    changes = AnnouncedChanges(wake)
    changes.add()
    changes.close()
    await asyncio.sleep(0.01)
    assert not wake.is_set()
