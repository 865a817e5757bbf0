"""The pins that all nodes share, on PostgreSQL (``SharedPinsPort``)."""

from collections.abc import Callable, Mapping
from typing import Final, cast

from ..shared_pins import PinNews, StoredPins
from . import pg_pins_sql
from .pg_notifications import PgNotifications
from .pg_pins_sql import PINS_CHANNEL
from .pg_values import text_of
from .postgres_threads import PostgresThreads


class PostgresPins:
    """Uses the connections of the limits: pins are read and written rarely."""

    def __init__(self, threads: PostgresThreads, notifications: PgNotifications, epoch: str) -> None:
        self._threads = threads
        self._notifications = notifications
        self._epoch: Final = epoch
        self.on_news: Callable[[PinNews, str], None] = lambda _, __: None
        notifications.listen(PINS_CHANNEL, self._notified)

    def start(self) -> None:
        self._notifications.start()

    async def read(self, name: str) -> StoredPins | None:
        return await self._threads.run(lambda connection: pg_pins_sql.read(connection, name))

    async def replace(self, name: str, content: bytes, revision: int | None) -> int | None:
        return await self._threads.run(
            lambda connection: pg_pins_sql.replace(connection, self._epoch, name, content, revision)
        )

    async def revisions(self) -> Mapping[str, int]:
        return await self._threads.run(pg_pins_sql.revisions)

    async def notify_listing(self, source: str) -> None:
        await self._threads.run(lambda connection: pg_pins_sql.notify_listing(connection, self._epoch, source))

    def _notified(self, payload: str) -> None:
        epoch, _, rest = payload.partition(" ")
        news, _, name = rest.partition(" ")
        if epoch != self._epoch and news in {"pins", "listing"}:
            self.on_news(cast("PinNews", news), text_of(name))
