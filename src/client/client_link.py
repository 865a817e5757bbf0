"""Connects and reconnects to the daemon: one connection at a time.

idle ──▶ connected ──▶ reconnecting ──▶ connected …    connect(), or a call; connection lost; reconnected in background
  ▲          └──────────────┴───▶ idle                 disconnect(), or a close code that forbids reconnecting
  └── connect() failed
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
from .reconnect_policy import LATER_STEP, MAX_DELAY_S, reconnect_delay_s, reconnect_when, session_survives

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
BACKOFF_FACTOR: Final = 2.0
"""``connect()``, or a call on an idle client, makes three attempts, 2 s and 4 s apart."""

Failure = Callable[[], Exception]
"""Creates a new exception per waiter, because a traceback belongs to one task."""


class ClientLink:
    """Connects and passes connections to the session. Once connected, reconnects whenever the connection is lost.

    ``dial`` makes one attempt; it raises only ``ConnectionFailedError``.
    """

    def __init__(self, session: ClientSession, dial: Callable[[], Awaitable[ClientConnection]]) -> None:
        self.connection: ClientConnection | None = None
        """The latest connection; None before the first and after ``close``."""
        self.last_error: Exception | None = None
        self._session = session
        self._dial = dial
        # Whether the session uses ``connection``.
        self._attached = False
        # Whether the last attempt was refused because a later connection has resumed the session.
        self._superseded = False
        # Held during an attempt to connect, so that only one is made at a time.
        self._connecting = asyncio.Lock()
        self._reconnecting: asyncio.Task[None] | None = None
        # Consecutive failures; the backoff step.
        self._step = 0
        # Resolved for waiters with None once connected, or with the reason why there will be no connection.
        self._next_connection: asyncio.Future[Failure | None] | None = None

    @property
    def connected(self) -> bool:
        return self.connection is not None and self.connection.open

    @property
    def accepts_calls(self) -> bool:
        return self.connection is not None and self.connection.accepts_calls

    @property
    def idle(self) -> bool:
        """Whether there is no connection and no reconnect is running."""
        return not self._attached and (self._reconnecting is None or self._reconnecting.done())

    async def establish(self, attempts: int = ATTEMPTS, backoff_factor: float = BACKOFF_FACTOR) -> None:
        """Connects in at most ``attempts`` attempts, unless already connected.

        Raises:
            ConnectionFailedError: all attempts failed. It is the error of the last attempt, also in ``last_error``.
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
        """Like ``establish``, but does not take over a session that was resumed elsewhere.

        Raises:
            ConnectionFailedError: as raised by ``establish``, or the session was resumed elsewhere.
        """
        closed = None if self.connection is None or self._attached else self.connection.close_code
        if self.connection is not None and (self._superseded or closed == CLOSE_SUPERSEDED):
            url = self.connection.endpoint.url
            message = f"the session at {url} was resumed elsewhere; call connect() to start another"
            self.last_error = ConnectionFailedError(message, retryable=False)
            raise self.last_error
        await self.establish(attempts)

    async def ready(self, unless: asyncio.Future[Any] | None = None) -> None:
        """Waits until a connection accepts calls, or ``unless`` is done.

        Raises:
            ConnectionFailedError: connecting failed, and no reconnect is running.
            ConnectionLostError: the client was disconnected in the meantime.
        """
        while not self.accepts_calls and not (unless and unless.done()):
            if self.idle:
                await self.restore()
                continue
            if self._next_connection is None:
                self._next_connection = asyncio.get_running_loop().create_future()
            next_connection = self._next_connection
            await asyncio.wait(
                {next_connection, unless} if unless else {next_connection}, return_when=asyncio.FIRST_COMPLETED
            )
            failure = next_connection.result() if next_connection.done() else None
            if failure is not None:
                raise failure()

    async def close(self) -> None:
        """Closes cleanly and stops reconnecting. Waiters for answers and connections get an error."""
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            await asyncio.wait({self._reconnecting})
        async with self._connecting:
            connection, self.connection, self._attached = self.connection, None, False
            if connection is not None:
                await self._session.flush()
                await connection.close()
                self._session.end(lambda: connection.lost("maybe"))
        self._resolve_waiters(lambda: ConnectionLostError("the client was disconnected", executed="no"))

    # --- internal ----------------------------------------------------------------------------------------------------

    async def _attempt(self) -> None:
        try:
            connection = await self._dial()
        except ConnectionFailedError as failed:
            self.last_error = failed
            if failed.superseded:
                self._superseded = True
                self._cancel_reconnect()
                self._stop_reconnecting(failed)
            raise
        if self._attached and self.connection is not None:  # the connection has ended but has not reported it yet
            self._detach(self.connection)
        self._cancel_reconnect()
        self.connection, self._attached, self._superseded = connection, True, False
        connection.start(self._session.deliver, self._ended)
        self._session.adopt(connection)
        self._resolve_waiters(None)

    def _cancel_reconnect(self) -> None:
        if self._reconnecting is not None and self._reconnecting is not asyncio.current_task():
            self._reconnecting.cancel()

    def _ended(self, connection: ClientConnection) -> None:
        if connection is not self.connection or not self._attached:
            return
        self._detach(connection)
        when = reconnect_when(connection.close_code)
        if when == "never":
            self._resolve_waiters(lambda: ConnectionFailedError(str(connection.lost("no")), retryable=False))
            return
        if connection.confirmed:
            self._step = 0
        if when == "later":
            self._step = max(self._step, LATER_STEP)
        self._reconnecting = asyncio.create_task(self._reconnect(), name="toold client reconnect")

    def _detach(self, ended: ClientConnection) -> None:
        """Reports to the session how its connection ended."""
        self._attached, self.last_error = False, ended.lost("maybe")
        notify = self._session.suspend if session_survives(ended.close_code) else self._session.end
        notify(lambda: ended.lost("maybe"))

    async def _reconnect(self) -> None:
        last_message = ""
        while True:
            await asyncio.sleep(reconnect_delay_s(self._step, random.random()))  # noqa: S311 - jitter, not a secret
            self._step += 1
            async with self._connecting:
                try:
                    await self._attempt()
                except ConnectionFailedError as failed:
                    # Logged once per reason, because an outage may last for days.
                    _log.log(
                        logging.DEBUG if str(failed) == last_message else logging.WARNING,
                        "reconnect failed: %s",
                        failed,
                    )
                    last_message = str(failed)
                    if not failed.retryable:
                        self._stop_reconnecting(failed)
                        return
                    if failed.busy:
                        self._step = max(self._step, LATER_STEP)
                else:
                    return

    def _stop_reconnecting(self, failed: ConnectionFailedError) -> None:
        message = str(failed)
        self._session.end(lambda: ConnectionLostError(f"{message}; calls in flight may have run", executed="maybe"))
        self._resolve_waiters(lambda: ConnectionFailedError(message, retryable=False))

    def _resolve_waiters(self, failure: Failure | None) -> None:
        next_connection, self._next_connection = self._next_connection, None
        if next_connection is not None:
            next_connection.set_result(failure)
