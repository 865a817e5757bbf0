"""Threads with connections to a PostgreSQL database, which they open with their first statement."""

import asyncio
import concurrent.futures
import contextlib
import os
import socket
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

import psycopg
import structlog

from ..store_errors import StoreError
from .pg_connection import connect_to_postgres, reason_of

Connection = psycopg.Connection[tuple[Any, ...]]

_CLOSE_TIMEOUT_S: Final = 1.0
"""How long a statement that hangs can delay the daemon's shutdown."""

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class PostgresThreads:
    """Runs work on one of ``threads`` threads. ``name`` is shown in ``pg_stat_activity``, ``epoch`` is this node."""

    def __init__(self, address: str, *, name: str, epoch: str, lease_s: float, threads: int) -> None:
        self._address = address
        self._name = name
        self._epoch = epoch
        self._lease_s = lease_s
        self._threads = concurrent.futures.ThreadPoolExecutor(threads, thread_name_prefix="store-reader")
        self._own = threading.local()
        self._connections: list[Connection] = []
        self._closing = False

    def connect(self) -> Connection:
        """Returns a new connection, which the caller closes.

        Raises:
            StoreError: the database cannot be reached.
        """
        return connect_to_postgres(self._address, name=self._name, lost_after_s=self._lease_s, node=self._epoch)

    async def run(self, work: Callable[[Connection], T]) -> T:
        """Runs work with the connection of one of the threads, and once more if the connection is lost.

        Raises:
            StoreError: the database does not answer, or refuses.
        """
        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, work)

    async def close(self) -> None:
        """Closes the connections. Work that is still running after 1 s is interrupted."""
        self._closing = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        closing = asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        _, hung = await asyncio.wait([closing], timeout=_CLOSE_TIMEOUT_S)
        if hung:
            # Otherwise its thread would wait for the server until TCP gives up, and the process would wait for the
            # thread.
            _log.warning("database read hangs; interrupted")
            for connection in list(self._connections):
                _interrupt(connection)
            _, hung = await asyncio.wait([closing], timeout=_CLOSE_TIMEOUT_S)
        if hung:  # a thread is connecting, which has a time limit
            return
        for connection in self._connections:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _require_open(self) -> None:
        if self._closing:
            raise StoreError("the store is closed", "the store is closed")

    def _run(self, work: Callable[[Connection], T]) -> T:
        try:
            connection = self._connection()
            try:
                return work(connection)
            except psycopg.Error:
                if not connection.closed:
                    raise
                return work(self._connection())
        except psycopg.Error as error:
            reason = reason_of(error)
            raise StoreError(f"the database cannot be read ({reason})", reason) from None

    def _connection(self) -> Connection:
        self._require_open()
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is None or connection.closed:
            if connection is not None:
                self._own.connection = None
                self._connections.remove(connection)
            connection = self.connect()
            self._own.connection = connection
            self._connections.append(connection)
        return connection


def _interrupt(connection: Connection) -> None:
    """Ends another thread's wait for the server. Closing its connection would free memory that the thread still
    uses."""
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
