"""The way to the daemon: one connection at a time, and the next one when it ends.

idle ──▶ up ──▶ away ──▶ up …      connect, by hand or for a call; a break; the return, in the background
  ▲       └───────┴───▶ idle       disconnect, or an end after which nobody comes back unasked
  └── an attempt by hand failed
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final

from ..protocol.frames import CLOSE_SUPERSEDED
from .client_connection import ClientConnection
from .client_errors import ConnectionFailedError, ConnectionLostError
from .client_session import ClientSession
from .reconnect_policy import LATER_STEP, MAX_DELAY_S, outlives, reconnect_delay_s, when_to_return

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
BACKOFF_FACTOR: Final = 2.0
"""By hand, or for a call that finds a client idle: so many attempts, 2 s and 4 s apart."""

Failure = Callable[[], Exception]
"""Makes the same exception anew for each who has to hear of it: a traceback belongs to one task."""


class ClientLink:
    """Dials, hands connections to the session, and comes back by itself once a connection has stood.

    ``dial`` makes one attempt; it raises ``ConnectionFailedError`` alone.
    """

    def __init__(self, session: ClientSession, dial: Callable[[], Awaitable[ClientConnection]]) -> None:
        self.connection: ClientConnection | None = None
        """The last one; None before the first, and after ``close``."""
        self.last_error: Exception | None = None
        self._session = session
        self._dial = dial
        # Whether the connection stands as far as the session was told.
        self._up = False
        # Attempts are made one at a time, by whoever needs a connection.
        self._connecting = asyncio.Lock()
        self._return: asyncio.Task[None] | None = None
        # How often in a row it came to no good; counts the pauses.
        self._step = 0
        # What those wait for who need a connection: None where one came, else why none will.
        self._arrival: asyncio.Future[Failure | None] | None = None

    @property
    def connected(self) -> bool:
        return self.connection is not None and self.connection.open

    @property
    def takes_calls(self) -> bool:
        return self.connection is not None and self.connection.takes_calls

    @property
    def idle(self) -> bool:
        """Whether there is no connection, and none is being tried for in the background."""
        return not self._up and (self._return is None or self._return.done())

    async def establish(self, attempts: int = ATTEMPTS, backoff_factor: float = BACKOFF_FACTOR) -> None:
        """Connect unless connected, now, in so many attempts.

        Raises:
            ConnectionFailedError: no attempt succeeded; it is the last one's, and ``last_error``.
        """
        async with self._connecting:
            attempt = 0
            while not self.connected:
                attempt += 1
                try:
                    await self._attempt()
                except ConnectionFailedError as failed:
                    _log.warning("attempt %d to connect failed: %s", attempt, failed)
                    if not failed.retryable or attempt >= attempts:
                        raise
                    await asyncio.sleep(min(backoff_factor**attempt, MAX_DELAY_S))

    async def restore(self, attempts: int = ATTEMPTS) -> None:
        """As ``establish``, but a session that was resumed elsewhere is not taken back.

        Raises:
            ConnectionFailedError: as ``establish``, or the session was resumed elsewhere.
        """
        if self.connection is not None and not self._up and self.connection.close_code == CLOSE_SUPERSEDED:
            url = self.connection.endpoint.url
            message = f"the session at {url} was resumed elsewhere; call connect() to start another"
            self.last_error = ConnectionFailedError(message, retryable=False)
            raise self.last_error
        await self.establish(attempts)

    async def ready(self, unless: asyncio.Future[Any] | None = None) -> None:
        """Return once there is a connection that takes calls, or ``unless`` is done.

        Raises:
            ConnectionFailedError: none came about, and nobody tries any more.
            ConnectionLostError: the client was disconnected meanwhile.
        """
        while not self.takes_calls and not (unless and unless.done()):
            if self.idle:
                await self.restore()
                continue
            if self._arrival is None:
                self._arrival = asyncio.get_running_loop().create_future()
            arrival = self._arrival
            await asyncio.wait({arrival, unless} if unless else {arrival}, return_when=asyncio.FIRST_COMPLETED)
            failure = arrival.result() if arrival.done() else None
            if failure is not None:
                raise failure()

    async def close(self) -> None:
        """Close in good order, and come back no more. Whoever waits, for an answer or for a connection, hears of it."""
        if self._return is not None:
            self._return.cancel()
            await asyncio.wait({self._return})
        async with self._connecting:
            connection, self.connection, self._up = self.connection, None, False
            if connection is not None:
                await self._session.say_farewell()
                await connection.close()
                self._session.end(lambda: connection.lost("maybe"))
        self._announce(lambda: ConnectionLostError("the client was disconnected", executed="no"))

    # --- within ------------------------------------------------------------------------------------------------------

    async def _attempt(self) -> None:
        try:
            connection = await self._dial()
        except ConnectionFailedError as failed:
            self.last_error = failed
            raise
        if self._up and self.connection is not None:  # it has ended, and has not said so yet
            self._lose(self.connection)
        if self._return is not None and self._return is not asyncio.current_task():
            self._return.cancel()
        self.connection, self._up = connection, True
        connection.start(self._session.deliver, self._ended)
        self._session.adopt(connection)
        self._announce(None)

    def _ended(self, connection: ClientConnection) -> None:
        if connection is not self.connection or not self._up:
            return
        self._lose(connection)
        when = when_to_return(connection.close_code)
        if when == "never":
            self._announce(lambda: ConnectionFailedError(str(connection.lost("no")), retryable=False))
            return
        if connection.proven:
            self._step = 0
        if when == "later":
            self._step = max(self._step, LATER_STEP)
        self._return = asyncio.create_task(self._come_back(), name="toold client return")

    def _lose(self, ended: ClientConnection) -> None:
        """Tell the session how its connection ended."""
        self._up, self.last_error = False, ended.lost("maybe")
        tell = self._session.suspend if outlives(ended.close_code) else self._session.end
        tell(lambda: ended.lost("maybe"))

    async def _come_back(self) -> None:
        said = ""
        while True:
            await asyncio.sleep(reconnect_delay_s(self._step, random.random()))  # noqa: S311 - it spreads clients, it guards nothing
            self._step += 1
            async with self._connecting:
                try:
                    await self._attempt()
                except ConnectionFailedError as failed:
                    # Once for each reason: an outage may last for days.
                    _log.log(logging.DEBUG if str(failed) == said else logging.WARNING, "not back yet: %s", failed)
                    said = str(failed)
                    if not failed.retryable:
                        self._give_up(failed)
                        return
                    if failed.busy:
                        self._step = max(self._step, LATER_STEP)
                else:
                    return

    def _give_up(self, failed: ConnectionFailedError) -> None:
        message = str(failed)
        self._session.end(lambda: ConnectionLostError(f"{message}; what was in flight may have run", executed="maybe"))
        self._announce(lambda: ConnectionFailedError(message, retryable=False))

    def _announce(self, failure: Failure | None) -> None:
        arrival, self._arrival = self._arrival, None
        if arrival is not None:
            arrival.set_result(failure)
