"""Retained results of all nodes in PostgreSQL, in chunks. Times are those of the database.

With a bucket, a result of more than one chunk is an object in the bucket, and the result's row has the object's name.
An object is listed in ``result_object`` before it is written, and again once its result is deleted. Objects that stay
listed are deleted later.
"""

import contextlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

import psycopg

from ..result_storage import (
    PLAIN_HANDLE,
    TOMBSTONE_TTL_S,
    ResultDeletedError,
    ResultFile,
    ResultSizeError,
    ResultUnknownError,
)
from ..store_errors import StoreError
from .pg_connection import connect_to_postgres, reason_of

Connection = psycopg.Connection[tuple[Any, ...]]

_NAME_BYTES: Final = 16
CHUNK_BYTES: Final = 1024**2
"""The size of a chunk; one statement sends one chunk."""
_LOCK: Final = 0x746F6F6C66
"""The key of the advisory lock under which space is freed. Without it, two nodes would delete twice as much as needed.
"""
_SLICE: Final = 500
UPLOAD_S: Final = 3600
"""The longest time of an upload; after that, its object is deleted."""
READING_S: Final = 60
"""How long the object of a deleted result stays, for calls that are reading it."""

_CLOCK: Final = "extract(epoch FROM clock_timestamp())::float8"
_REPLACE: Final = f"""
INSERT INTO retained_result (principal, handle, extension, size, at) VALUES (%s, %s, %s, 0, {_CLOCK})
ON CONFLICT (principal, handle) DO UPDATE SET extension = excluded.extension, size = 0, at = excluded.at,
                                              deleted_at = NULL, object = NULL
RETURNING number
"""  # noqa: S608 - our own names
# Lists the objects of the results that the rest of the statement selects, to be deleted after a delay.
_LIST_STORED: Final = f"""
INSERT INTO result_object (name, due_at) SELECT object, {_CLOCK} + %s FROM retained_result WHERE object IS NOT NULL
"""  # noqa: S608 - our own names
# The principal with the most bytes loses its oldest result.
_OLDEST_OF_LARGEST: Final = """
SELECT number, size FROM retained_result
WHERE deleted_at IS NULL AND number <> %(but)s AND principal = (
    SELECT principal FROM retained_result WHERE deleted_at IS NULL
    GROUP BY principal HAVING bool_or(number <> %(but)s) ORDER BY sum(size) DESC, min(at) LIMIT 1
) ORDER BY at, number LIMIT 1
"""


class BucketPort(Protocol):
    """Objects in a bucket. Each method blocks, and raises StoreError if the bucket cannot be used."""

    def put(self, name: str, pieces: Iterable[bytes]) -> int: ...

    def read(self, name: str, offset: int, size: int) -> bytes: ...

    def delete(self, names: Sequence[str]) -> None: ...


class StoredObject(NamedTuple):
    """An object that has been written to the bucket."""

    name: str
    size: int


class FoundResult(NamedTuple):
    """The row of a result."""

    number: int
    object: str | None
    """The name of its object; None if its content is in chunks."""
    file: ResultFile


class PostgresResults:
    """``ResultStorage`` on PostgreSQL, with a separate connection, opened on first use.

    ``connect`` raises StoreError if the database cannot be reached.
    """

    def __init__(
        self, connect: Callable[[], Connection], *, ttl_s: float, max_bytes: int, bucket: BucketPort | None = None
    ) -> None:
        self._bucket = bucket
        self.ttl_s = ttl_s
        self.max_bytes = max_bytes
        self._connect = connect
        self._connection: Connection | None = None

    def write(self, principal: str, handle: str, extension: str, pieces: Iterable[bytes], _now: float) -> int:
        chunks = self._limited(_chunks(pieces))
        if self._bucket is None:
            return self._write_row(principal, handle, extension, chunks, None)
        first = next(chunks, b"")
        second = next(chunks, b"")
        if not second:
            return self._write_row(principal, handle, extension, iter([first] if first else []), None)
        name = secrets.token_hex(_NAME_BYTES)
        with self._transaction() as connection:
            connection.execute(
                f"INSERT INTO result_object (name, due_at) VALUES (%s, {_CLOCK} + %s)",  # noqa: S608 - our own names
                (name, UPLOAD_S),
            )
        # Not within a transaction, which would stay open during the upload.
        size = self._bucket.put(name, chain([first, second], chunks))
        return self._write_row(principal, handle, extension, iter(()), StoredObject(name, size))

    def _write_row(
        self, principal: str, handle: str, extension: str, chunks: Iterator[bytes], stored: StoredObject | None
    ) -> int:
        with self._transaction() as connection:
            connection.execute(
                f"{_LIST_STORED} AND principal = %s AND handle = %s", (READING_S, _key(principal), _key(handle))
            )
            (number,) = _one(connection.execute(_REPLACE, (_key(principal), _key(handle), extension)))
            connection.execute("DELETE FROM result_chunk WHERE number = %s", (number,))
            size = 0
            for chunk in chunks:
                connection.execute(
                    "INSERT INTO result_chunk (number, place, content) VALUES (%s, %s, %s)", (number, size, chunk)
                )
                size += len(chunk)
            if stored is not None:
                size = stored.size
                listed = connection.execute("DELETE FROM result_object WHERE name = %s", (stored.name,)).rowcount
                if not listed:
                    reason = "the upload took too long"
                    raise StoreError(f"the bucket of results cannot be used ({reason})", reason)
            connection.execute(
                "UPDATE retained_result SET size = %s, object = %s WHERE number = %s",
                (size, None if stored is None else stored.name, number),
            )
            self._free_space(connection, but=number)
        return size

    def _limited(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the pieces. Raises ResultSizeError once they have more bytes than all results may have together."""
        size = 0
        for chunk in chunks:
            size += len(chunk)
            if size > self.max_bytes:
                raise ResultSizeError
            yield chunk

    def read(self, principal: str, handle: str, _now: float) -> tuple[str, bytes]:
        with self._transaction() as connection:
            row = self._find(connection, principal, handle)
            content = None if row.object else _read(connection, row.number, 0, row.file.size)
        return row.file.extension, self._object(row, 0, row.file.size) if content is None else content

    def read_piece(self, principal: str, handle: str, offset: int, size: int, _now: float) -> bytes:
        with self._transaction() as connection:
            row = self._find(connection, principal, handle)
            content = None if row.object else _read(connection, row.number, offset, size)
        return self._object(row, offset, size) if content is None else content

    def _object(self, row: FoundResult, offset: int, size: int) -> bytes:
        if self._bucket is None:
            reason = "results_bucket is not set, but a result is in a bucket"
            raise StoreError(f"the bucket of results cannot be used ({reason})", reason)
        return self._bucket.read(row.object or "", offset, min(size, row.file.size - offset))

    def find(self, principal: str, handle: str, _now: float) -> ResultFile:
        with self._transaction() as connection:
            return self._find(connection, principal, handle).file

    def newest(self, principal: str, limit: int, _now: float) -> list[tuple[str, ResultFile]]:
        with self._transaction() as connection:
            rows = connection.execute(
                "SELECT handle, extension, size, at FROM retained_result WHERE principal = %s AND deleted_at IS NULL "  # noqa: S608 - our own names
                f"AND at + %s >= {_CLOCK} ORDER BY at DESC, number DESC",
                (_key(principal), self.ttl_s),
            )
            named = ((bytes(handle).decode(errors="replace"), ResultFile(*file)) for handle, *file in rows)
            return [(handle, file) for handle, file in named if re.fullmatch(PLAIN_HANDLE, handle)][:limit]

    def delete_expired(self, _now: float) -> None:
        more = True
        while more:
            with self._transaction() as connection:
                more = self._delete_expired(connection)
        more = self._bucket is not None
        while more:
            more = self._delete_objects()

    def _delete_objects(self) -> bool:
        """Deletes a slice of the listed objects; returns whether there may be more."""
        if self._bucket is None:
            return False
        with self._transaction() as connection:
            due = connection.execute(
                f"SELECT name FROM result_object WHERE due_at <= {_CLOCK} ORDER BY due_at LIMIT %s "  # noqa: S608 - our own names
                "FOR UPDATE SKIP LOCKED",
                (_SLICE,),
            ).fetchall()
            names = [name for (name,) in due]
            self._bucket.delete(names)
            connection.execute("DELETE FROM result_object WHERE name = ANY(%s)", (names,))
        return len(names) >= _SLICE

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()

    def _delete_expired(self, connection: Connection) -> bool:
        """Deletes a slice; returns whether there may be more."""
        expired = connection.execute(
            f"SELECT number FROM retained_result WHERE deleted_at IS NULL AND at + %s < {_CLOCK} "  # noqa: S608 - our own names
            "ORDER BY at LIMIT %s FOR UPDATE SKIP LOCKED",
            (self.ttl_s, _SLICE),
        ).fetchall()
        _delete(connection, [number for (number,) in expired])
        self._free_space(connection, but=-1)
        forgotten = connection.execute(
            "DELETE FROM retained_result WHERE number IN (SELECT number FROM retained_result "  # noqa: S608 - our own names
            f"WHERE deleted_at < {_CLOCK} - %s LIMIT %s FOR UPDATE SKIP LOCKED)",
            (TOMBSTONE_TTL_S, _SLICE),
        ).rowcount
        return max(len(expired), forgotten) >= _SLICE

    def _free_space(self, connection: Connection, *, but: int) -> None:
        """Deletes results beyond the limit, except one. Until the transaction ends, no other node does this."""
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        (total,) = _one(connection.execute("SELECT sum(size) FROM retained_result WHERE deleted_at IS NULL"))
        excess = (total or 0) - self.max_bytes
        while excess > 0:
            found = connection.execute(_OLDEST_OF_LARGEST, {"but": but}).fetchone()
            if found is None:
                return
            _delete(connection, [found[0]])
            excess -= found[1]

    def _find(self, connection: Connection, principal: str, handle: str) -> FoundResult:
        row = connection.execute(
            f"SELECT number, object, extension, size, at, deleted_at IS NOT NULL OR at + %s < {_CLOCK} "  # noqa: S608 - our own names
            "FROM retained_result WHERE principal = %s AND handle = %s",
            (self.ttl_s, _key(principal), _key(handle)),
        ).fetchone()
        if row is None:
            raise ResultUnknownError
        number, name, extension, size, at, deleted = row
        if deleted:
            raise ResultDeletedError
        return FoundResult(number, name, ResultFile(extension, size, at))

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Opens a transaction, on a new connection after a failure.

        Raises:
            StoreError: the database cannot be used.
        """
        if self._connection is None or self._connection.closed:
            self._connection = self._connect()
        try:
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error as error:
            raise StoreError(f"the database cannot be used ({reason_of(error)})", reason_of(error)) from None


def open_postgres_results(
    address: str,
    *,
    node_name: str,
    lost_after_s: float,
    ttl_s: float,
    max_bytes: int,
    bucket: BucketPort | None = None,
) -> PostgresResults:
    """Returns the retained results of a database, to which it connects when the first result is used."""

    def connect() -> Connection:
        return connect_to_postgres(address, name=f"toold {node_name} results", lost_after_s=lost_after_s)

    return PostgresResults(connect, ttl_s=ttl_s, max_bytes=max_bytes, bucket=bucket)


def _key(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _one(cursor: psycopg.Cursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    row = cursor.fetchone()
    assert row is not None  # noqa: S101 - each of these statements returns one row
    return row


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the bytes of pieces in chunks of ``CHUNK_BYTES``, the last one smaller."""
    buffered = bytearray()
    for piece in pieces:
        buffered += piece
        while len(buffered) >= CHUNK_BYTES:
            yield bytes(buffered[:CHUNK_BYTES])
            del buffered[:CHUNK_BYTES]
    if buffered:
        yield bytes(buffered)


def _read(connection: Connection, number: int, offset: int, size: int) -> bytes:
    """Returns up to ``size`` bytes from an offset."""
    rows = connection.execute(
        "SELECT substring(content FROM (greatest(%(offset)s - place, 0) + 1)::int "
        "FOR least(%(end)s - greatest(%(offset)s, place), octet_length(content))::int) "
        "FROM result_chunk WHERE number = %(number)s AND place < %(end)s "
        "AND place + octet_length(content) > %(offset)s ORDER BY place",
        {"number": number, "offset": offset, "end": offset + size},
    )
    return b"".join(content for (content,) in rows)


def _delete(connection: Connection, numbers: list[int]) -> None:
    """Deletes the content of results; their handles stay known."""
    if numbers:
        connection.execute("DELETE FROM result_chunk WHERE number = ANY(%s)", (numbers,))
        connection.execute(f"{_LIST_STORED} AND number = ANY(%s)", (READING_S, numbers))
        connection.execute(
            f"UPDATE retained_result SET size = 0, object = NULL, deleted_at = {_CLOCK} WHERE number = ANY(%s)",  # noqa: S608 - our own names
            (numbers,),
        )
