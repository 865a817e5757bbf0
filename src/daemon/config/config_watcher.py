"""Watches the files of agents and the settings file, in each place where it can be, and reloads the settings."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
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


async def watch_config(places: Callable[[], Sequence[Path]], reload: Callable[[], Awaitable[object]]) -> None:
    """Call ``reload`` after each change of a file at one of ``places()``. Runs until cancelled.

    The file must be unchanged for one interval first, because an editor may still be writing it. A refused reload is
    logged and retried after the next change.
    """
    known = latest = _marks_of(places())
    while True:
        await asyncio.sleep(POLL_S)
        before, latest = latest, _marks_of(places())
        if latest == before and latest != known:
            known = latest
            with suppress(SettingsError):  # reload() logs it
                await reload()


def _marks_of(places: Sequence[Path]) -> list[tuple[Path, FileMark | None]]:
    return [(place, mark_of(place)) for place in places]
