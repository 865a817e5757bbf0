"""What running calls report, to an editor that asked for it: of several that it has not taken yet, the last."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...client import OnProgress
from ...protocol.mcp import json_rpc
from ...protocol.mcp.mcp_call import ProgressCounter
from ...protocol.tool_call import Progress
from .line_channel import LineChannel


@asynccontextmanager
async def reporting(lines: LineChannel, token: str | int | None) -> AsyncIterator[OnProgress | None]:
    """What to call with each report of one call, for as long as the block runs; None where no token came with it."""
    if token is None:
        yield None
        return
    reports = _Reports(lines, token)
    telling = asyncio.create_task(reports.tell())
    try:
        yield reports.note
    finally:
        telling.cancel()
        await asyncio.wait({telling})
    await reports.tell_last()


class _Reports:
    def __init__(self, lines: LineChannel, token: str | int) -> None:
        self._lines = lines
        self._token = token
        self._counter = ProgressCounter()
        self._latest: Progress | None = None
        self._news = asyncio.Event()

    def note(self, progress: Progress) -> None:
        self._latest = progress
        self._news.set()

    async def tell(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self.tell_last()

    async def tell_last(self) -> None:
        progress, self._latest = self._latest, None
        if progress is not None:
            params = self._counter.count(progress, self._token)
            await self._lines.write(json_rpc.notification("notifications/progress", params))
