"""Changes of lists that a server announces. A server may announce more changes than the daemon can follow."""

import asyncio
from typing import Final

from ..read_rate import ReadRate

LISTINGS_PER_S: Final = 0.2
"""The minimum interval, the same as between listings because clients list tools (``mcp_source.LOOK_AGAIN_S``)."""
LISTINGS_AT_ONCE: Final = 20.0
"""The number of announcements that are followed without a pause."""


class AnnouncedChanges:
    """Requests a new listing soon after each announcement. Announcements before the listing count as one."""

    def __init__(self, wake: asyncio.Event) -> None:
        """``wake`` is set when it is time to list again."""
        self._wake = wake
        self._rate = ReadRate(LISTINGS_PER_S, burst=LISTINGS_AT_ONCE)
        self._due: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<AnnouncedChanges due={self._due is not None}>"

    def add(self) -> None:
        """A list has changed."""
        if self._due is not None or self._wake.is_set():
            return
        pause = self._rate.consume()
        if pause <= 0:
            self._wake.set()
        else:
            self._due = asyncio.get_running_loop().call_later(pause, self._read_again)

    def close(self) -> None:
        """The session has ended."""
        if self._due is not None:
            self._due.cancel()

    def _read_again(self) -> None:
        self._due = None
        self._wake.set()
