"""The owners of the files that principals uploaded to vendors."""

import asyncio

from .store_port import StoreReader
from .store_writer import StoreWriter
from .vendor_file_rows import VendorFileDeleted, VendorFileUploaded


class VendorFileStore:
    """Reads raise StoreError if the database cannot be read; they see all earlier writes."""

    def __init__(self, writer: StoreWriter, reader: StoreReader) -> None:
        self._writer = writer
        self._reader = reader

    async def record_upload(self, upload: VendorFileUploaded) -> None:
        """Returns once the owner of a file is on disk. If another principal had this id before, it no longer has it.

        Raises:
            StoreError: the write fails; it is retried until it succeeds or the process ends.
        """
        await asyncio.wrap_future(self._writer.commit(upload))

    def record_deletion(self, deletion: VendorFileDeleted) -> None:
        """Deletes a file's record asynchronously. Never blocks."""
        self._writer.enqueue_optional(deletion)

    async def owned_files(self, provider: str, principal: str | None) -> frozenset[str]:
        """Returns the ids of a principal's files at a vendor; None: of all principals' files."""
        return await self._reader.query_flushed(lambda queries: queries.owned_files(provider, principal))
