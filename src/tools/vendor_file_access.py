"""The interface by which tools use files at a vendor."""

from typing import Protocol

from ..providers import RemoteFile


class VendorFileAccess(Protocol):
    """The files at one vendor that a call may use: those that its principal uploaded; for an operator, all.

    Each method except ``check`` makes one request, as ``ToolContext.vendor`` does, and raises its errors. A file of
    another principal is ``NotFoundError``, as a file that does not exist; no request is made then.
    """

    def check(self, name: str, size: int, purpose: str) -> None:
        """Checks a file's name and size in bytes before an upload.

        Raises:
            InvalidArgumentsError: the vendor does not accept the file; the message says what it accepts.
        """
        ...

    async def upload(self, name: str, content: bytes, purpose: str) -> RemoteFile:
        """Uploads a file, which then belongs to the call's principal."""
        ...

    async def list(self, *, purpose: str | None = None) -> tuple[RemoteFile, ...]:
        """Returns the files, optionally of one purpose. Of a vendor whose list has pages, the first page."""
        ...

    async def info(self, file_id: str) -> RemoteFile: ...

    async def delete(self, file_id: str) -> None: ...

    async def content(self, file_id: str) -> bytes: ...
