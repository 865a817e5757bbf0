"""Watches the files of agents and the settings file, in each place where it can be, and reloads the settings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from .setting_sources import SettingsError

POLL_S: Final = 1.0

FileMark = tuple[int, int, int]


def mark_of(file: Path) -> FileMark | None:
    """A value that changes when the file is changed or replaced; None if there is no file."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


class ConfigWatcher:
    """Calls ``reload`` after each change of a file at one of ``places()`` that no other reload has read."""

    def __init__(self, places: Callable[[], Sequence[Path]], reload: Callable[[], Awaitable[object]]) -> None:
        self._places = places
        self._reload = reload
        self._read: list[tuple[Path, FileMark | None]] = []
        self._reading = asyncio.Lock()

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """The block in which a reload reads the files, one reload at a time. It reads all earlier changes."""
        async with self._reading:
            self._read = _marks_of(self._places())
            yield

    async def run(self) -> None:
        """Watch until cancelled.

        A file must be unchanged for one interval before it is read, because an editor may still be writing it. A
        refused reload is logged and retried after the next change.
        """
        latest = self._read = _marks_of(self._places())
        while True:
            await asyncio.sleep(POLL_S)
            before, latest = latest, _marks_of(self._places())
            if latest == before and latest != self._read:
                self._read = latest
                with suppress(SettingsError):  # reload() logs it
                    await self._reload()


def _marks_of(places: Sequence[Path]) -> list[tuple[Path, FileMark | None]]:
    return [(place, mark_of(place)) for place in places]
