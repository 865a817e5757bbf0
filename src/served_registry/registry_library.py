"""The served registry: keeps its entries in memory, and writes each change to disk before it takes effect."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec
import structlog

from ..store import RegistryEntryDeleted, RegistryEntryRow, RegistryEntrySaved, RegistryEntryStore, StoreError
from .entry_check import checked_entry, merged, normal_patch
from .registry_content import EntryVersion, RegistryContent
from .registry_kinds import NAMES, Kind
from .registry_problem import RegistryRefusedError, field_problem

EtagCheck = Callable[[str], None]
"""Raises a ``RegistryRefusedError`` if a client expects another entity tag."""

_encode: Final = msgspec.json.Encoder().encode
_log = structlog.get_logger("toold.registry")


def etag_of(content: bytes) -> str:
    """The entity tag of an answer."""
    return f'"{sha256(content).hexdigest()[:32]}"'


class RegistryLibrary:
    """Reads use the entries in memory. Changes are made one after the other; ``on_change`` is awaited after each."""

    def __init__(self, store: RegistryEntryStore, on_change: Callable[[Kind], Awaitable[None]]) -> None:
        self._store = store
        self._on_change = on_change
        self._changing = asyncio.Lock()
        self._content: RegistryContent | None = None

    async def load(self) -> None:
        """Reads the entries from the database.

        Raises:
            StoreError: the database cannot be read.
        """
        rows = await self._store.all_entries()
        self._content = await asyncio.to_thread(RegistryContent, rows)

    @property
    def is_loaded(self) -> bool:
        """Whether the entries are loaded."""
        return self._content is not None

    @property
    def content(self) -> RegistryContent:
        """The entries.

        Raises:
            RegistryRefusedError: they are not loaded yet, since the database cannot be opened.
        """
        if self._content is None:
            raise RegistryRefusedError(503, "the registry's entries are not loaded yet; try again later")
        return self._content

    def answer(self, kind: Kind, entry_id: str) -> tuple[bytes, str]:
        """An entry in the form of answers, and its entity tag.

        Raises:
            RegistryRefusedError: there is no such entry.
        """
        content = self.content
        encoded = _encode(content.view(kind, content.newest(kind, entry_id)))
        return encoded, etag_of(encoded)

    async def create(self, kind: Kind, body: object) -> tuple[str, bytes, str]:
        """Stores a new entry. Returns its id, its content in the form of answers, and its entity tag.

        Raises:
            RegistryRefusedError: it is invalid, exists already, does not fit, or cannot be written.
        """
        names = NAMES[kind]
        async with self._changing:
            table = await self._checked(kind, body)
            entry_id = str(uuid.uuid4()) if names.makes_id else table["id"]
            if entry_id in self.content.tables(kind):
                raise RegistryRefusedError(400, f"the {names.word} {entry_id!r} already exists")
            await self._save(kind, entry_id, table, None)
            made = self.answer(kind, entry_id)
        await self._on_change(kind)
        return entry_id, *made

    async def replace(
        self, kind: Kind, entry_id: str, body: object, expected: EtagCheck, *, patch: bool = False
    ) -> str:
        """Replaces an entry with the body; with ``patch``, replaces only the fields in the body.

        Returns the entity tag of exactly this change. If another change follows at once, its tag would let the client
        overwrite content that it has not seen.

        Raises:
            RegistryRefusedError: there is no such entry, or as for ``create``.
        """
        async with self._changing:
            current = self.content.newest(kind, entry_id)
            expected(self.answer(kind, entry_id)[1])
            if patch:
                body = merged(current.table, normal_patch(kind, body))
            body = _with_id(kind, entry_id, body)
            table = await self._checked(kind, body)
            if table == current.table:
                return self.answer(kind, entry_id)[1]
            await self._save(kind, entry_id, table, current)
            etag = self.answer(kind, entry_id)[1]
        await self._on_change(kind)
        return etag

    async def delete(self, kind: Kind, entry_id: str, expected: EtagCheck) -> None:
        """Deletes an entry that no other entry names.

        Raises:
            RegistryRefusedError: there is no such entry, another entry names it, or the write fails.
        """
        async with self._changing:
            self.content.newest(kind, entry_id)
            expected(self.answer(kind, entry_id)[1])
            self.content.check_unused(kind, entry_id)
            await self._write(RegistryEntryDeleted(kind.value, entry_id))
            self.content.delete(kind, entry_id)
        _log.info("entry of the registry deleted", kind=kind.value, id=entry_id)
        await self._on_change(kind)

    async def _checked(self, kind: Kind, body: object) -> dict[str, Any]:
        tools = self.content.tables(Kind.TOOL)
        table = await asyncio.to_thread(checked_entry, kind, body, tools)  # long definitions take tens of milliseconds
        self.content.check_references(kind, table)
        return table

    async def _save(self, kind: Kind, entry_id: str, table: Mapping[str, Any], current: EntryVersion | None) -> None:
        encoded, now = _encode(table), time.time()
        self.content.check_space(kind, encoded, new=current is None)
        version, created_at = (1, now) if current is None else (current.row.version + 1, current.row.created_at)
        row = RegistryEntryRow(kind.value, entry_id, version, encoded, created_at, now)
        await self._write(RegistryEntrySaved(row, NAMES[kind].kept_versions))
        self.content.save(row)
        _log.info("entry of the registry saved", kind=kind.value, id=entry_id, version=version)

    async def _write(self, change: RegistryEntrySaved | RegistryEntryDeleted) -> None:
        try:
            await self._store.write(change)
        except StoreError as error:
            raise RegistryRefusedError(
                503, f"the change cannot be written ({error.reason}); nothing has changed"
            ) from None


def _with_id(kind: Kind, entry_id: str, body: object) -> object:
    """The body with the id from the path; the body may already contain it."""
    if not isinstance(body, dict):
        return body
    field = NAMES[kind].id_field if NAMES[kind].makes_id else "id"
    if kind is Kind.PROMPT and "name" in body and field not in body:
        field = "name"
    if body.get(field, entry_id) != entry_id:
        raise RegistryRefusedError(422, [field_problem((field,), "differs from the id in the path")])
    return body if NAMES[kind].makes_id else {**body, "id": entry_id}
