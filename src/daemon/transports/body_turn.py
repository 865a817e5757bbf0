"""The turn of a large request body (``large_frames``)."""

import asyncio
import time
from contextlib import suppress
from typing import Final

from .large_frames import LargeFrames

TURN_S: Final = 20.0
"""How long a body may take while another one waits."""
WAIT_S: Final = 2 * TURN_S
"""How long a body waits for its turn."""
_CHECK_INTERVAL_S: Final = 0.5


class NoTurnError(Exception):
    """Too many large bodies are being received."""


class BodyTurn:
    """A large body's turn. While it waits, it ends the turn that has lasted longest."""

    def __init__(self, frames: LargeFrames, principal: str) -> None:
        self._frames = frames
        self._principal = principal
        self._granted = asyncio.Event()
        self.reading: asyncio.Timeout | None = None
        """The timeout of the current read, which ends at once if the body must give its turn away."""

    def go_on(self) -> None:
        self._granted.set()

    def give_away(self) -> None:
        """Ends the current read with a ``TimeoutError``."""
        if self.reading is not None:
            with suppress(RuntimeError):  # the last read has ended; the body is being decoded
                self.reading.reschedule(0.0)

    async def take(self) -> None:
        """Waits for the turn.

        Raises:
            NoTurnError: the turn did not come in time.
        """
        began = time.monotonic()
        if self._frames.request(self, self._principal, began):
            return
        while time.monotonic() < began + WAIT_S:
            try:
                async with asyncio.timeout(_CHECK_INTERVAL_S):
                    await self._granted.wait()
                    return
            except TimeoutError:
                late = self._frames.overdue(time.monotonic(), TURN_S)
                if isinstance(late, BodyTurn):
                    late.give_away()
        raise NoTurnError

    def release(self) -> None:
        """Ends the turn, or the wait for it."""
        self._frames.release(self, time.monotonic())
