"""The interface of storages for retained results: the files of one daemon, or a database that several nodes use.

Exceptions::

    ResultDeletedError    the result expired, or was deleted to make space
    ResultUnknownError    no result was ever retained with this handle for this principal
    ResultSizeError       the result is larger than the limit of all results together
"""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

TOMBSTONE_TTL_S: Final = 7 * 86400.0
"""How long the handle of a deleted result stays known; the same as for the ids of calls (docs/protocol.md)."""
PLAIN_HANDLE: Final = "[a-z0-9_-]{1,40}"
"""The format of handles that are listed: they need no escapes in a URI or a file name."""


class ResultDeletedError(Exception):
    """The result expired, or was deleted to make space."""


class ResultUnknownError(Exception):
    """No result was ever retained with this handle for this principal."""


class ResultSizeError(Exception):
    """The result is larger than the limit of all results together."""


class ResultFile(NamedTuple):
    """One retained result."""

    extension: str
    size: int
    at: float
    """When it was written, in Unix seconds."""


class ResultStorage(Protocol):
    """Results by principal and handle, limited in size and age. Blocks; used by one thread at a time.

    Beyond the limit, the principal with the most bytes loses its oldest results. Each method raises OSError or
    StoreError if the storage cannot be used.
    """

    ttl_s: float
    max_bytes: int

    def write(self, principal: str, handle: str, extension: str, pieces: Iterable[bytes], now: float, /) -> int:
        """Writes a result at a Unix time, or replaces the one with this handle; returns its size.

        Raises:
            ResultSizeError: it is too large; nothing was written.
        """

    def read(self, principal: str, handle: str, now: float, /) -> tuple[str, bytes]:
        """Returns the extension and the content of a result.

        Raises:
            ResultDeletedError, ResultUnknownError: it does not exist.
        """

    def read_piece(self, principal: str, handle: str, offset: int, size: int, now: float, /) -> bytes:
        """Returns up to ``size`` bytes of a result.

        Raises:
            ResultDeletedError, ResultUnknownError: it does not exist.
        """

    def find(self, principal: str, handle: str, now: float, /) -> ResultFile:
        """Returns the size, format and time of a result.

        Raises:
            ResultDeletedError, ResultUnknownError: it does not exist.
        """

    def newest(self, principal: str, limit: int, now: float, /) -> list[tuple[str, ResultFile]]:
        """Returns the newest results with their handles, if these are plain."""

    def delete_expired(self, now: float, /) -> None:
        """Deletes expired results, the oldest ones beyond the size limit, and expired tombstones."""

    def close(self) -> None:
        """Ends the use of the storage."""
