"""The configuration file is followed, once a change has settled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from toold.daemon.config import config_watcher
from toold.daemon.config.config_watcher import mark_of, watch_config
from toold.daemon.config.setting_sources import SettingsError


class Reloads:
    """Counts reloads, and refuses on demand."""

    def __init__(self) -> None:
        self.count = 0
        self.refuses = False
        self.happened = asyncio.Event()

    async def __call__(self) -> None:
        self.count += 1
        self.happened.set()
        if self.refuses:
            raise SettingsError("port (toold.toml): must be a whole number")

    async def next(self) -> None:
        async with asyncio.timeout(30):
            await self.happened.wait()
        self.happened.clear()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "toold.toml"


@pytest.fixture
async def reloads(file: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Reloads]:
    monkeypatch.setattr(config_watcher, "POLL_S", 0.02)
    reloads = Reloads()
    task = asyncio.create_task(watch_config(lambda: [file.parent / "absent/toold.toml", file], reloads))
    await asyncio.sleep(0)  # it has looked once
    yield reloads
    task.cancel()
    await asyncio.wait([task])


async def test_a_change_is_read_once(reloads: Reloads, file: Path) -> None:
    """A changed, new or replaced file is read once, and again only after the next change."""
    file.write_text("port = 1", encoding="utf-8")
    await reloads.next()
    new = file.with_name("new")
    new.write_text("port = 2", encoding="utf-8")
    new.replace(file)
    await reloads.next()
    file.unlink()
    await reloads.next()
    assert reloads.count == 3


async def test_a_refused_file_is_still_watched(reloads: Reloads, file: Path) -> None:
    """Once for each change, and the next one is read."""
    reloads.refuses = True
    file.write_text("port = x", encoding="utf-8")
    await reloads.next()
    reloads.refuses = False
    file.write_text("port = 12", encoding="utf-8")
    await reloads.next()
    assert reloads.count == 2


def test_a_mark_distinguishes_files(tmp_path: Path) -> None:
    """By what they are, also with the same name and size."""
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("1", encoding="utf-8")
    second.write_text("2", encoding="utf-8")
    before = mark_of(first)
    assert before == mark_of(first)
    second.replace(first)
    assert mark_of(first) != before
    assert mark_of(second) is None
