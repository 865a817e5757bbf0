"""Gives calls access to retained results, in files or in a cluster's database, off the event loop, with errors that
callers can act on."""

import asyncio
import concurrent.futures
import datetime as dt
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

from ...protocol.error_codes import NotFoundError, ResultExpiredError, ResultTooLargeError, ServiceUnavailableError
from ...protocol.tool_call import Json, Principal
from ...resource_catalog import StoredItem
from ...shaping import ShapingError, as_csv, as_json, as_ndjson, from_csv, from_json, from_ndjson
from ...store import ResultDeletedError, ResultSizeError, ResultStorage, ResultUnknownError, StoreError
from ...tools import ResultFormat, RetainedFile, RetainedResult
from .result_directory import ResultDirectory

RESULTS_DIRECTORY: Final = "results"
"""The directory below the state directory."""
DELETE_INTERVAL_S: Final = 60.0

_SHOWN_HANDLE_CHARS: Final = 120

_WRITERS: Final[dict[ResultFormat, Callable[[list[Any]], Iterable[bytes]]]] = {
    "json": as_json,
    "ndjson": as_ndjson,
    "csv": as_csv,
}
_READERS: Final[dict[str, Callable[[bytes], Any]]] = {"json": from_json, "ndjson": from_ndjson, "csv": from_csv}

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class ResultFiles:
    """The results of all principals, accessed on a separate thread. Implements ``tools.RetainedResults``.

    ``check_bucket`` uses the bucket of large results, if there is one; it raises StoreError if that fails.
    """

    def __init__(self, storage: ResultStorage, *, check_bucket: Callable[[], None] | None = None) -> None:
        self._storage = storage
        self._check_bucket = check_bucket
        self.problem: str | None = None
        """The reason why the bucket could not be used at the last check."""
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="result-files")

    def __repr__(self) -> str:
        return f"<ResultFiles ttl_s={self._storage.ttl_s:g} max_bytes={self._storage.max_bytes}>"

    def apply(self, *, ttl_s: float, max_bytes: int) -> None:
        """Applies a new age and size limit."""
        self._storage.ttl_s = ttl_s
        self._storage.max_bytes = max_bytes

    async def keep(
        self, principal: Principal, handle: str, value: Json, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        now = time.time()

        def write() -> int:
            return self._storage.write(principal.name, handle, file_format, _pieces(value, rows, file_format), now)

        try:
            size = await self._run(write)
        except ResultSizeError:
            raise ResultTooLargeError(
                f"The result is larger than the limit of {self._storage.max_bytes:,} bytes for all retained results; "
                "request less data, or ask the operator to raise retained_results_keep_bytes."
            ) from None
        except (OSError, StoreError) as error:
            raise _failed(error, "written", executed_maybe=True) from None
        expires = dt.datetime.fromtimestamp(int(now + self._storage.ttl_s), dt.UTC)
        count = 1 if rows is None else len(rows)
        return RetainedResult(handle, count, size, file_format, expires.isoformat().replace("+00:00", "Z"))

    async def read(self, principal: Principal, handle: str) -> Json:
        def read() -> Json:
            extension, data = self._storage.read(principal.name, handle, time.time())
            return _READERS[extension](data)

        return await self._reading(handle, read)

    async def find(self, principal: Principal, handle: str) -> RetainedFile:
        """The file with this handle. Raises the same errors as ``read``."""

        def find() -> RetainedFile:
            file = self._storage.find(principal.name, handle, time.time())
            return RetainedFile(file.extension, file.size)

        return await self._reading(handle, find)

    async def newest(self, principal: Principal, limit: int) -> Sequence[StoredItem]:
        """Implements ``resource_catalog.ResultReader.newest``.

        Raises:
            ServiceUnavailableError: the disk cannot be read.
        """
        try:
            listed = await self._run(lambda: self._storage.newest(principal.name, limit, time.time()))
        except (OSError, StoreError) as error:
            raise _failed(error, "read", executed_maybe=False) from None
        return [StoredItem(handle, file.at, file.size, file.extension) for handle, file in listed]

    async def read_piece(self, principal: Principal, handle: str, offset: int, size: int) -> bytes:
        """Up to ``size`` bytes of the file with this handle. Raises the same errors as ``read``."""
        return await self._reading(
            handle, lambda: self._storage.read_piece(principal.name, handle, offset, size, time.time())
        )

    async def _reading(self, handle: str, read: Callable[[], T]) -> T:
        shown = repr(handle[:_SHOWN_HANDLE_CHARS])
        try:
            return await self._run(read)
        except ResultUnknownError:
            raise NotFoundError(f"Result {shown} does not exist; use the `handle` of an answer that has one.") from None
        except ResultDeletedError:
            raise ResultExpiredError(
                f"Result {shown} expired, or was deleted to make space; call the tool again if repeating it is safe.",
                executed="no",
            ) from None
        except (OSError, StoreError) as error:
            raise _failed(error, "read", executed_maybe=False) from None
        except (ShapingError, KeyError) as error:
            _log.error("retained result is damaged", handle=handle, reason=str(error))
            raise ServiceUnavailableError(
                f"The file of result {shown} was changed or damaged.", transient=False
            ) from None

    async def run(self) -> None:
        """Deletes expired results periodically, until cancelled. Checks the bucket until it can be used."""
        while True:
            if self._check_bucket is not None and await self._usable(self._check_bucket):
                self._check_bucket = None
            try:
                await self._run(lambda: self._storage.delete_expired(time.time()))
            except (OSError, StoreError) as error:
                _log.warning("expired results cannot be deleted", reason=_reason(error))
            await asyncio.sleep(DELETE_INTERVAL_S)

    async def _usable(self, check: Callable[[], None]) -> bool:
        # On another thread, so that small results do not wait for the bucket.
        try:
            await asyncio.to_thread(check)
        except StoreError as error:
            if error.reason != self.problem:
                _log.warning("the bucket of results cannot be used", reason=error.reason)
            self.problem = error.reason
            return False
        self.problem = None
        return True

    def close(self) -> None:
        """Stops the thread; abandons an operation that hangs."""
        self._thread.submit(self._storage.close)
        self._thread.shutdown(wait=False)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def open_results(directory: Path, *, ttl_s: float, max_bytes: int) -> ResultFiles:
    """Returns the retained results below a directory, which is created with the first result."""
    return ResultFiles(ResultDirectory(directory, ttl_s=ttl_s, max_bytes=max_bytes))


def _pieces(value: Json, rows: list[Any] | None, file_format: ResultFormat) -> Iterable[bytes]:
    if rows is None and file_format == "json":
        return [msgspec.json.encode(value)]
    return _WRITERS[file_format]([value] if rows is None else rows)


def _failed(error: OSError | StoreError, action: str, *, executed_maybe: bool) -> ServiceUnavailableError:
    return ServiceUnavailableError(
        f"The file of the result could not be {action} ({_reason(error)}).",
        executed="maybe" if executed_maybe else "no",
    )


def _reason(error: OSError | StoreError) -> str:
    if isinstance(error, StoreError):
        return error.reason
    return os.strerror(error.errno) if error.errno else type(error).__name__
