"""Results that are retained as files, and read by their handles."""

from typing import Any, Final, Literal, NamedTuple, Protocol

import msgspec

from ..protocol.tool_call import Json, Principal

ResultFormat = Literal["json", "ndjson", "csv"]

RESULT_FORMATS: Final[tuple[ResultFormat, ...]] = ("json", "ndjson", "csv")


class RetainedResult(msgspec.Struct, frozen=True):
    """Describes a result in a file, in place of the result."""

    handle: str
    """The id of the call that produced it."""
    count: int
    """The number of rows; 1 for a single value."""
    bytes: int
    format: ResultFormat
    expires: str
    """ISO 8601, in UTC."""


class RetainedFile(NamedTuple):
    """The file of a retained result."""

    extension: str
    """One of ``RESULT_FORMATS``."""
    size: int
    """In bytes."""


class RetainedResults(Protocol):
    """The retained results; each belongs to its principal."""

    async def keep(
        self, principal: Principal, handle: str, value: Json, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        """Write ``rows``, or ``value`` if they are None, to a file.

        Raises:
            ResultTooLargeError: it exceeds the limit of all retained results together.
            ServiceUnavailableError: the disk cannot be written.
        """
        ...

    async def read(self, principal: Principal, handle: str) -> Json:
        """The result with this handle.

        Raises:
            NotFoundError: the result never existed, or belongs to another principal.
            ResultExpiredError: its retention has passed, or newer results took its space.
            ServiceUnavailableError: the disk cannot be read.
        """
        ...
