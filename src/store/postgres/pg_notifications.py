"""Listens to notifications of a PostgreSQL database on the event loop."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Final

import psycopg

from ..store_errors import StoreError

Connection = psycopg.Connection[tuple[Any, ...]]

_RETRY_S: Final = 2.0
"""The time between two attempts to connect. Users of notifications poll too."""


class PgNotifications:
    """Calls functions with the payloads of notifications, from ``start`` to ``close``.

    Notifications that are sent while the connection is lost are missed.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._notified: dict[str, Callable[[str], None]] = {}
        self._connection: Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._lost = asyncio.Event()

    def listen(self, channel: str, notified: Callable[[str], None]) -> None:
        """Calls ``notified`` with each payload on this channel. Call it before ``start``."""
        self._notified[channel] = notified

    def start(self) -> None:
        """Starts to listen in the background. A second call does nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="database notifications")

    async def close(self) -> None:
        """Stops listening and closes the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                connection = await asyncio.to_thread(self._listen)
            except (StoreError, psycopg.Error):
                await asyncio.sleep(_RETRY_S)  # the writer reports that the database is away
                continue
            loop = asyncio.get_running_loop()
            self._lost.clear()
            descriptor = connection.fileno()
            loop.add_reader(descriptor, self._read, connection)
            try:
                await self._lost.wait()
            finally:
                loop.remove_reader(descriptor)
                with contextlib.suppress(psycopg.Error):
                    connection.close()
            await asyncio.sleep(_RETRY_S)

    def _listen(self) -> Connection:
        connection = self._connect()
        try:
            for channel in self._notified:
                connection.execute(f"LISTEN {channel}".encode())
        except BaseException:
            connection.close()
            raise
        return connection

    def _read(self, connection: Connection) -> None:
        try:
            connection.pgconn.consume_input()
        except psycopg.Error:
            self._lost.set()
            return
        while notification := connection.pgconn.notifies():
            self._notified[notification.relname.decode()](notification.extra.decode("utf-8", "replace"))
