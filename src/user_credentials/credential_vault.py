"""The vault of credentials: the interface, and the vault in the daemon's database.

Nothing is cached, so replacing or removing a credential takes effect with the next call. No principal can reach values
of another.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Protocol

import structlog

from ..protocol.error_codes import OverCapacityError, ServiceUnavailableError
from ..protocol.user_credential import CredentialField
from ..store import Store, StoreError, UserCredentialDeleted, UserCredentialRow
from .credential_values import MAX_SERVICES, CredentialEntry

MAX_STORED: Final = 100_000
"""The maximum number of credentials of all principals together: some 100 MB at 1 KB each."""

SIGN_IN_PREFIX: Final = "oauth:"
"""The prefix that rows with sign-ins have in the service column; names of services have no colon."""

_log = structlog.get_logger(__name__)


class CredentialVault(Protocol):
    """Keeps the credentials of all principals. A ``tools.CredentialLookup``.

    Each method raises ServiceUnavailableError if the vault cannot be used.
    """

    @property
    def page(self) -> str | None:
        """The URL of the page on which users enter credentials."""
        ...

    async def value(self, principal: str, wanted: CredentialField) -> str | None:
        """The current value of one field; None if it is not stored."""
        ...

    async def put(self, principal: str, service: str, fields: Mapping[str, str]) -> CredentialEntry:
        """Stores a credential, replacing the previous one.

        Raises:
            OverCapacityError: the principal already has credentials for ``MAX_SERVICES`` services.
        """
        ...

    async def entries(self, principal: str) -> list[CredentialEntry]:
        """The principal's credentials, by service."""
        ...

    async def entry(self, principal: str, service: str) -> CredentialEntry | None:
        """The principal's credential for a service."""
        ...

    async def remove(self, principal: str, service: str) -> bool:
        """Deletes a credential; False if there was none."""
        ...

    async def prepare(self) -> None:
        """Called once, after the start."""
        ...

    async def close(self) -> None:
        """Closes its connections."""
        ...


class CredentialCipher(Protocol):
    """Encrypts fields for one place in the database. They cannot be decrypted for another place."""

    def sealed(self, values: Mapping[str, str], place: str) -> bytes: ...

    def opened(self, sealed: bytes, place: str) -> dict[str, str] | None: ...

    def is_current(self, sealed: bytes, place: str) -> bool:
        """Whether the fields are encrypted with the current key: the first one in the file of keys."""
        ...


class LocalVault:
    """Credentials in the daemon's database, encrypted with a key that is stored elsewhere. Implements
    ``CredentialVault``.
    """

    def __init__(self, store: Store, open_cipher: Callable[[], CredentialCipher], page: str | None) -> None:
        """``open_cipher`` reads the keys, or makes a key at the first use. It blocks, and may raise
        ServiceUnavailableError.
        """
        self._store = store.user_credentials
        self._open_cipher = open_cipher
        self.page = page
        self._cipher: CredentialCipher | None = None
        self._changing = asyncio.Lock()

    def __repr__(self) -> str:
        return "<LocalVault>"

    async def value(self, principal: str, wanted: CredentialField) -> str | None:
        fields = await self.fields(principal, wanted.service)
        return None if fields is None else fields.get(wanted.field)

    async def fields(self, principal: str, service: str) -> dict[str, str] | None:
        """All fields of a credential; None if it is not stored.

        Raises:
            ServiceUnavailableError: the vault cannot be used.
        """
        row = await self._find(principal, service)
        if row is None:
            return None
        fields = (await self._keys()).opened(row.sealed, _place(row))
        if fields is None:
            _log.error("a credential was encrypted with another key; it must be entered again", service=service)
        return fields

    async def put(self, principal: str, service: str, fields: Mapping[str, str]) -> CredentialEntry:
        cipher = await self._keys()
        row = UserCredentialRow(principal, service, tuple(fields), time.time(), b"")
        row = row._replace(sealed=cipher.sealed(fields, _place(row)))
        try:
            async with self._changing:
                own = {known.service for known in await self._store.of_principal(principal)}
                services = sum(not known.startswith(SIGN_IN_PREFIX) for known in own)
                if service not in own and not service.startswith(SIGN_IN_PREFIX) and services >= MAX_SERVICES:
                    raise too_many_services()
                if service not in own and await self._store.count() >= MAX_STORED:
                    raise OverCapacityError.content_free(
                        f"The daemon stores the maximum of {MAX_STORED:,} credentials."
                    )
                await self._store.write(row)
        except StoreError as error:
            raise _unusable(error) from error
        return _entry(row)

    async def entries(self, principal: str) -> list[CredentialEntry]:
        try:
            rows = await self._store.of_principal(principal)
        except StoreError as error:
            raise _unusable(error) from error
        return [_entry(row) for row in rows if not row.service.startswith(SIGN_IN_PREFIX)]

    async def entry(self, principal: str, service: str) -> CredentialEntry | None:
        row = await self._find(principal, service)
        return None if row is None else _entry(row)

    async def remove(self, principal: str, service: str) -> bool:
        async with self._changing:
            if await self._find(principal, service) is None:
                return False
            try:
                await self._store.write(UserCredentialDeleted(principal, service))
            except StoreError as error:
                raise _unusable(error) from error
        return True

    async def prepare(self) -> None:
        """Encrypts again, with the current key, all credentials that are encrypted with an older one."""
        try:
            if not await self._store.count():
                return
            cipher, resealed, last = await self._keys(), 0, ("", "")
            while rows := await self._store.after(*last):
                last = (rows[-1].principal, rows[-1].service)
                for row in rows:
                    fields = None
                    if not cipher.is_current(row.sealed, _place(row)):
                        fields = cipher.opened(row.sealed, _place(row))
                    if fields is not None and await self._reseal(row, cipher.sealed(fields, _place(row))):
                        resealed += 1
        except StoreError as error:
            raise _unusable(error) from error
        if resealed:
            _log.info("credentials encrypted with the current key", credentials=resealed)

    async def close(self) -> None:
        """Does nothing: the store's owner closes it."""

    async def _reseal(self, row: UserCredentialRow, sealed: bytes) -> bool:
        async with self._changing:
            if await self._store.find(row.principal, row.service) != row:
                return False  # replaced meanwhile
            await self._store.write(row._replace(sealed=sealed))
        return True

    async def _find(self, principal: str, service: str) -> UserCredentialRow | None:
        try:
            return await self._store.find(principal, service)
        except StoreError as error:
            raise _unusable(error) from error

    async def _keys(self) -> CredentialCipher:
        if self._cipher is None:
            self._cipher = await asyncio.to_thread(self._open_cipher)
        return self._cipher


def too_many_services() -> OverCapacityError:
    """The error when a principal has too many services."""
    return OverCapacityError.content_free(
        f"You have credentials for {MAX_SERVICES} services, the maximum; remove one first."
    )


def _place(row: UserCredentialRow) -> str:
    return f"{row.principal}\n{row.service}"


def _entry(row: UserCredentialRow) -> CredentialEntry:
    changed_at = datetime.fromtimestamp(row.changed_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return CredentialEntry(row.service, row.fields, changed_at)


def _unusable(error: StoreError) -> ServiceUnavailableError:
    return ServiceUnavailableError.content_free(f"The stored credentials cannot be used now ({error.reason}).")
