"""Results that are kept as files: by whoever answers with a handle instead, read again by who has it."""

from typing import Any, Final, Literal, Protocol

import msgspec

from ..protocol.tool_call import Json, Principal

ResultFormat = Literal["json", "ndjson", "csv"]

RESULT_FORMATS: Final[tuple[ResultFormat, ...]] = ("json", "ndjson", "csv")


class RetainedResult(msgspec.Struct, frozen=True):
    """What stands for a result that is kept as a file."""

    handle: str
    """The id of the call whose result it is."""
    count: int
    """Rows; 1 where it is one value."""
    bytes: int
    format: ResultFormat
    expires: str
    """ISO 8601, in UTC."""


class RetainedResults(Protocol):
    """The files; each is its principal's alone."""

    async def keep(
        self, principal: Principal, handle: str, value: Json, rows: list[Any] | None, file_format: ResultFormat
    ) -> RetainedResult:
        """Keep ``rows``, or where they are None the one ``value``.

        Raises:
            ResultTooLargeError: it is more than all files together may be.
            ServiceUnavailableError: the disk refuses.
        """
        ...

    async def read(self, principal: Principal, handle: str) -> Json:
        """What is kept under a handle.

        Raises:
            NotFoundError: nothing ever was, or it is another principal's.
            ResultExpiredError: it was kept for its time, or others took its room.
            ServiceUnavailableError: the disk refuses.
        """
        ...
