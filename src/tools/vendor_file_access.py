"""The interface by which tools use files at a vendor."""

from typing import Protocol

from ..providers import RemoteFile


class VendorFileAccess(Protocol):
    """The files at one vendor that a call may use: those that its principal uploaded, or all for an operator.

    All methods except ``check`` make one request, as ``ToolContext.vendor`` does, and raise its errors. For another
    principal's file they raise ``NotFoundError``, as for a file that does not exist, and make no request.
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

    async def list(self, *, purpose: str | None = None, ownerless: bool = False) -> tuple[RemoteFile, ...]:
        """Returns the files, optionally of one purpose. If the vendor's list has pages, returns the first.

        ``ownerless``: only files without a recorded owner, such as files that were uploaded elsewhere. Only operators
        see them.
        """
        ...

    async def info(self, file_id: str) -> RemoteFile: ...

    async def delete(self, file_id: str) -> None: ...

    async def content(self, file_id: str) -> bytes: ...
