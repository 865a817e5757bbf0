"""Gives calls access to the owners of vendor files."""

import time

import structlog

from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import Store, StoreError, VendorFileDeleted, VendorFileUploaded
from .journal_timeout import write_failure

_log = structlog.get_logger(__name__)


class VendorFileOwners:
    """Implements ``dispatch.FileOwnersPort``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def record(self, provider: str, file_id: str, principal: Principal) -> None:
        upload = VendorFileUploaded(provider, file_id, principal.name, time.time())
        reason = await write_failure(self._store.vendor_files.record_upload(upload))
        if reason is not None:
            _log.error("file uploaded before its owner was persisted", provider=provider, reason=reason)

    async def owned(self, provider: str, principal: Principal | None) -> frozenset[str]:
        try:
            return await self._store.vendor_files.owned_files(provider, None if principal is None else principal.name)
        except StoreError as error:
            message = f"The owners of files cannot be read at present ({error.reason}); try again later."
            raise ServiceUnavailableError.content_free(message) from error

    def forget(self, provider: str, file_id: str) -> None:
        self._store.vendor_files.record_deletion(VendorFileDeleted(provider, file_id))
