"""The entries of the registry that the daemon serves."""

import asyncio

from .registry_entry_rows import RegistryEntryChange, RegistryEntryRow
from .store_port import StoreReader
from .store_writer import StoreWriter


class RegistryEntryStore:
    """Reads and writes entries."""

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    async def write(self, change: RegistryEntryChange) -> None:
        """Returns once a change is on disk.

        Raises:
            StoreError: the write fails; it is not retried.
        """
        await asyncio.wrap_future(self._writer.commit(change))

    async def all_entries(self) -> list[RegistryEntryRow]:
        """Returns all versions of all entries, in the order of each entry's versions.

        Raises:
            StoreError: the database cannot be read.
        """
        return await self._reader.query_flushed(lambda queries: queries.registry_entries())
