"""The credentials of users: encrypted by the caller, so that the store never has a value."""

import asyncio

from .store_port import StoreReader
from .store_writer import StoreWriter
from .user_credential_rows import UserCredentialDeleted, UserCredentialRow


class UserCredentialStore:
    """Reads raise StoreError if the database cannot be read; they see all writes that have returned."""

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    async def write(self, entry: UserCredentialRow | UserCredentialDeleted) -> None:
        """Returns once a change is committed.

        Raises:
            StoreError: the write fails; it is not retried.
        """
        await asyncio.wrap_future(self._writer.commit(entry))

    async def find(self, principal: str, service: str) -> UserCredentialRow | None:
        """Returns a principal's credential for a service."""
        return await self._reader.query(lambda queries: queries.find_credential(principal, service))

    async def of_principal(self, principal: str) -> list[UserCredentialRow]:
        """Returns the credentials of a principal, by service."""
        return await self._reader.query(lambda queries: queries.credentials_of(principal))

    async def count(self) -> int:
        """Returns the number of credentials of all principals."""
        return await self._reader.query(lambda queries: queries.credential_count())

    async def after(self, principal: str, service: str) -> list[UserCredentialRow]:
        """Returns the next credentials of all principals after this one, in order."""
        return await self._reader.query(lambda queries: queries.credentials_after(principal, service))
