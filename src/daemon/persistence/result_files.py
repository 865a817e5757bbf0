"""Result files as calls ask for them: off the loop, in words that callers can act on. Satisfies ``tools.Results``."""

import asyncio
import concurrent.futures
import datetime as dt
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
import structlog

from ...protocol.error_codes import NotFoundError, ResultExpiredError, ResultTooLargeError, ServiceUnavailableError
from ...protocol.tool_call import Json, Principal
from ...shaping import ShapingError, as_csv, as_json, as_ndjson, from_csv, from_json, from_ndjson
from ...tools import ResultFormat, RetainedResult
from .result_directory import NoRoomError, ResultDirectory, ResultGoneError, ResultUnknownError

RESULTS_DIRECTORY: Final = "results"
"""Below the state directory."""
TIDY_EVERY_S: Final = 60.0

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
    """The files of all principals, on one thread of their own."""

    def __init__(self, directory: ResultDirectory) -> None:
        self._directory = directory
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="result-files")

    def __repr__(self) -> str:
        return f"<ResultFiles keep_s={self._directory.keep_s:g} keep_bytes={self._directory.keep_bytes}>"

    def apply(self, *, keep_s: float, keep_bytes: int) -> None:
        """Keep files for so long, and so many bytes, from now on."""
        self._directory.keep_s = keep_s
        self._directory.keep_bytes = keep_bytes

    async def keep(
        self, principal: Principal, handle: str, value: Json, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        now = time.time()

        def write() -> int:
            return self._directory.write(principal.name, handle, file_format, _pieces(value, rows, file_format), now)

        try:
            size = await self._run(write)
        except NoRoomError:
            raise ResultTooLargeError(
                f"The result is larger than the {self._directory.keep_bytes:,} bytes that all result files together may"
                " have; ask for less, or have results_keep_bytes raised."
            ) from None
        except OSError as error:
            raise _refused(error, "written", executed_maybe=True) from None
        expires = dt.datetime.fromtimestamp(int(now + self._directory.keep_s), dt.UTC)
        count = 1 if rows is None else len(rows)
        return RetainedResult(handle, count, size, file_format, expires.isoformat().replace("+00:00", "Z"))

    async def read(self, principal: Principal, handle: str) -> Json:
        shown = repr(handle[:_SHOWN_HANDLE_CHARS])

        def read() -> Json:
            extension, data = self._directory.read(principal.name, handle, time.time())
            return _READERS[extension](data)

        try:
            return await self._run(read)
        except ResultUnknownError:
            raise NotFoundError(
                f"There is no result {shown}; a handle is what an answer with a file has as `handle`."
            ) from None
        except ResultGoneError:
            raise ResultExpiredError(
                f"The result {shown} was kept for its time, or until others took its room, and is gone; call the tool "
                "again if that does no harm.",
                executed="no",
            ) from None
        except OSError as error:
            raise _refused(error, "read", executed_maybe=False) from None
        except (ShapingError, KeyError) as error:
            _log.error("a result file is damaged", handle=handle, reason=str(error))
            raise ServiceUnavailableError(
                f"The file of the result {shown} was changed or damaged.", transient=False
            ) from None

    async def tidy(self) -> None:
        """For as long as the daemon runs: remove what is too old."""
        while True:
            try:
                await self._run(lambda: self._directory.tidy(time.time()))
            except OSError as error:
                _log.warning("result files cannot be tidied", reason=_reason(error))
            await asyncio.sleep(TIDY_EVERY_S)

    def close(self) -> None:
        """Begin nothing more; a disk that hangs is left behind."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def open_results(directory: Path, *, keep_s: float, keep_bytes: int) -> ResultFiles:
    """The result files below a directory, which is made when there is something to keep."""
    return ResultFiles(ResultDirectory(directory, keep_s=keep_s, keep_bytes=keep_bytes))


def _pieces(value: Json, rows: list[Any] | None, file_format: ResultFormat) -> Iterable[bytes]:
    if rows is None and file_format == "json":
        return [msgspec.json.encode(value)]
    return _WRITERS[file_format]([value] if rows is None else rows)


def _refused(error: OSError, done: str, *, executed_maybe: bool) -> ServiceUnavailableError:
    return ServiceUnavailableError(
        f"The result's file could not be {done} ({_reason(error)}).", executed="maybe" if executed_maybe else "no"
    )


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__
