"""Restricts a call to the vendor files of its principal."""

from functools import partial
from typing import Final, Protocol, TypeVar

from ...protocol.error_codes import NotFoundError
from ...protocol.tool_call import Principal
from ...providers import RemoteFile, VendorFiles
from ...tools import VendorOperation

T = TypeVar("T")

_SHOWN_ID_CHARS: Final = 80


class FileOwnersPort(Protocol):
    """The durable record of which principal uploaded which file."""

    async def record(self, provider: str, file_id: str, principal: Principal) -> None:
        """Records an upload. Never raises; takes some seconds at most."""
        ...

    async def owned(self, provider: str, principal: Principal | None) -> frozenset[str]:
        """Returns the ids of a principal's files, or of all principals' files.

        Raises:
            ServiceUnavailableError: the database cannot be read.
        """
        ...

    def forget(self, provider: str, file_id: str) -> None:
        """Deletes the record of a deleted file. Never blocks."""
        ...


class VendorCaller(Protocol):
    """The context of the call that uses the files."""

    @property
    def principal(self) -> Principal: ...

    async def vendor(self, provider: str, operation: VendorOperation[T]) -> T: ...


class PrincipalFiles:
    """The files of one vendor, for one call. Implements ``tools.VendorFileAccess``."""

    def __init__(
        self,
        provider: str,
        files: VendorFiles,
        owners: FileOwnersPort,
        caller: VendorCaller,
    ) -> None:
        self._provider = provider
        self._files = files
        self._owners = owners
        self._caller = caller
        self._principal = caller.principal

    def check(self, name: str, size: int, purpose: str) -> None:
        self._files.check(name, size, purpose)

    async def upload(self, name: str, content: bytes, purpose: str) -> RemoteFile:
        file = await self._caller.vendor(self._provider, partial(self._files.upload, name, content, purpose))
        await self._owners.record(self._provider, file.id, self._principal)
        return file

    async def list(self, *, purpose: str | None = None, ownerless: bool = False) -> tuple[RemoteFile, ...]:
        if ownerless and not self._principal.operator:
            return ()
        listed = await self._caller.vendor(self._provider, partial(self._files.list, purpose=purpose))
        if ownerless:
            recorded = await self._owners.owned(self._provider, None)
            return tuple(file for file in listed.files if file.id not in recorded)
        if self._principal.operator:
            return listed.files
        owned = await self._owners.owned(self._provider, self._principal)
        return tuple(file for file in listed.files if file.id in owned)

    async def info(self, file_id: str) -> RemoteFile:
        await self._require_own(file_id)
        return await self._caller.vendor(self._provider, partial(self._files.info, file_id))

    async def delete(self, file_id: str) -> None:
        await self._require_own(file_id)
        await self._caller.vendor(self._provider, partial(self._files.delete, file_id))
        self._owners.forget(self._provider, file_id)

    async def content(self, file_id: str) -> bytes:
        await self._require_own(file_id)
        return await self._caller.vendor(self._provider, partial(self._files.content, file_id))

    async def _require_own(self, file_id: str) -> None:
        if self._principal.operator or file_id in await self._owners.owned(self._provider, self._principal):
            return
        # The message is the same for another principal's file and for a file that does not exist.
        raise NotFoundError(f"You have no file {file_id[:_SHOWN_ID_CHARS]!r} at {self._files.rules.label}.")
