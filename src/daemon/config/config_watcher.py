"""Following the configuration file: what is written into it holds without a command and without a restart."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from .setting_sources import SettingsError

LOOK_S: Final = 1.0
"""How often it is looked at."""

Mark = tuple[int, int, int]


def mark_of(file: Path) -> Mark | None:
    """What tells whether a file has changed, also where another one was put in its place; None where there is none."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


async def follow(file: Path, reload: Callable[[], Awaitable[object]]) -> None:
    """For as long as the daemon runs: call ``reload`` when the file has changed, and stayed so for one look, since an
    editor may be in the middle of it. What is refused is in the log, and tried again with the next change.
    """
    known = latest = mark_of(file)
    while True:
        await asyncio.sleep(LOOK_S)
        before, latest = latest, mark_of(file)
        if latest == before and latest != known:
            known = latest
            with suppress(SettingsError):  # the log has it
                await reload()
