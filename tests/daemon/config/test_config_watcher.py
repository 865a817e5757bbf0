"""The configuration file is followed, once a change has settled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.waiting import until
from toold.daemon.config import config_watcher
from toold.daemon.config.config_watcher import ConfigWatcher, mark_of
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


class Places:
    """The places of the settings file. Counts how often the watcher looked."""

    def __init__(self, file: Path) -> None:
        self.looks = 0
        self._file = file

    def __call__(self) -> list[Path]:
        self.looks += 1
        return [self._file.parent / "absent/toold.toml", self._file]


@pytest.fixture
def places(file: Path) -> Places:
    return Places(file)


@pytest.fixture
def reloads() -> Reloads:
    return Reloads()


@pytest.fixture
async def watcher(places: Places, reloads: Reloads, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConfigWatcher]:
    monkeypatch.setattr(config_watcher, "POLL_S", 0.02)
    watcher = ConfigWatcher(places, reloads)
    task = asyncio.create_task(watcher.run())
    await asyncio.sleep(0)  # it has looked once
    yield watcher
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.usefixtures("watcher")
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


@pytest.mark.usefixtures("watcher")
async def test_a_refused_file_is_still_watched(reloads: Reloads, file: Path) -> None:
    """Once for each change, and the next one is read."""
    reloads.refuses = True
    file.write_text("port = x", encoding="utf-8")
    await reloads.next()
    reloads.refuses = False
    file.write_text("port = 12", encoding="utf-8")
    await reloads.next()
    assert reloads.count == 2


async def test_a_change_that_another_reload_has_read_is_not_read_again(
    watcher: ConfigWatcher, places: Places, reloads: Reloads, file: Path
) -> None:
    """The watcher sees the change at two looks, and reloads only after the next change."""
    file.write_text("port = 1", encoding="utf-8")
    async with watcher.reading():
        pass
    looks = places.looks
    await until(lambda: places.looks >= looks + 3)
    assert reloads.count == 0
    file.write_text("port = 12", encoding="utf-8")
    await reloads.next()


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
