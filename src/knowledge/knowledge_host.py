"""The collections of the settings: makes their tools and follows their folders."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import structlog

from ..protocol.error_codes import CallError
from ..protocol.tool_call import LOCAL, Json, Principal, ToolResult, stored_principal
from ..tools import FileAccess, Tool
from .collection_access import Collections
from .collection_folder import CollectionFolder, FolderReport
from .document_embedding import DocumentEmbedding
from .knowledge_index import KnowledgeIndex
from .knowledge_records import KNOWLEDGE_DATABASE, Scope
from .knowledge_settings import CollectionSettings
from .knowledge_tools import EMBED_TIMEOUT_S, EMBED_TOOL, KnowledgeTools

_IDLE_S: Final = 3600.0
"""The interval without folders: nothing happens until the settings change."""

_RETRY_S: Final = 60.0
"""The delay before failed embeddings are requested again, for example after a budget was spent."""

_log = structlog.get_logger(__name__)


class BackgroundCall(Protocol):
    """Calls a tool of this daemon for a principal, and returns the result."""

    def __call__(
        self, tool: str, arguments: Mapping[str, Json], principal: Principal, *, timeout_s: float
    ) -> Awaitable[ToolResult]: ...


class KnowledgeHost:
    """Makes the tools of the collections, and keeps those with folders up to date."""

    def __init__(
        self,
        collections: Mapping[str, CollectionSettings],
        state_directory: Path,
        *,
        files_of: Callable[[Path], FileAccess],
        model_id: Callable[[str], str],
        call: BackgroundCall,
        changed: Callable[[], None],
    ) -> None:
        """
        Args:
            collections: the settings by name.
            state_directory: the directory of the database.
            files_of: returns the access to the files of a folder.
            model_id: returns the full name of a model, or raises a ``CallError``.
            call: calls a tool of this daemon.
            changed: called when ``tools`` changes.
        """
        self._index = KnowledgeIndex(state_directory / KNOWLEDGE_DATABASE)
        self._embedding = DocumentEmbedding(self._index)
        self._model_id = model_id
        self._call = call
        self._files_of = files_of
        self._changed = changed
        self._wake = asyncio.Event()
        self._set(collections)

    def _set(self, collections: Mapping[str, CollectionSettings]) -> None:
        self._settings = collections
        self._reports: dict[str, FolderReport | None] = {
            name: None for name, settings in collections.items() if settings.folder is not None
        }
        self._folders = {name: CollectionFolder(self._index, Scope(name, "")) for name in self._reports}
        tools = KnowledgeTools(Collections(collections, self._reports), self._index, self._embedding)
        self.tools: list[Tool] = tools.all()

    def apply(self, collections: Mapping[str, CollectionSettings]) -> None:
        """Replace the collections."""
        if collections != self._settings:
            self._set(collections)
            self._changed()
            self._wake.set()
            self._index.shared_changed.set()

    async def run(self) -> None:
        """Reads the folders, again whenever they change. Runs as long as the daemon."""
        while True:
            self._wake.clear()
            await self._forget_folders()
            for name in list(self._folders):
                await self._update(name)
            waits = [self._settings[name].refresh_s for name in self._folders if name in self._settings]
            try:
                async with asyncio.timeout(min(waits, default=_IDLE_S)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _forget_folders(self) -> None:
        """Remove the documents of folders that are no longer configured; they can be read again."""
        if self._settings:
            try:
                await self._index.keep_only_folders(list(self._folders))
            except CallError as error:
                _log.warning("collections cannot be read", reason=error.summary or error.code)

    async def embed(self) -> None:
        """Makes missing embeddings with calls of ``knowledge_embed``. Runs as long as the daemon. Calls for folders are
        made as the operator; calls for documents that callers added, as their principals within their budgets.
        """
        while True:
            self._index.shared_changed.clear()
            failed = [
                name
                for name, settings in list(self._settings.items())
                if settings.embedding_model is not None and not await self._embed(name, settings.embedding_model)
            ]
            if failed:
                await asyncio.sleep(_RETRY_S)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRY_S):
                    await self._index.shared_changed.wait()

    async def _embed(self, name: str, model: str) -> bool:
        """Returns whether there was no error."""
        try:
            owners = await self._index.waiting_owners(name, self._model_id(model))
        except CallError as error:
            _log.warning("collection has no embeddings", collection=name, reason=error.summary or error.code)
            return False
        succeeded = True
        for owner in owners:
            principal = stored_principal(owner or LOCAL.name)
            result = await self._call(EMBED_TOOL, {"collection": name}, principal, timeout_s=EMBED_TIMEOUT_S)
            if result.error is not None:
                _log.warning("embeddings could not be made", collection=name, code=result.error.code)
                succeeded = False
        return succeeded

    async def close(self) -> None:
        """Close the database."""
        await self._index.close()

    async def _update(self, name: str) -> None:
        settings, folder = self._settings.get(name), self._folders.get(name)
        if settings is None or settings.folder is None or folder is None:  # the settings have changed meanwhile
            return
        reports = self._reports
        try:
            report = await folder.update(settings, settings.folder, self._files_of(settings.folder))
        except CallError as error:
            _log.warning("collection could not be updated", collection=name, reason=error.summary or error.code)
            return
        if report.problem is not None and reports[name] != report:
            _log.warning("folder of a collection cannot be read", collection=name, reason=report.problem)
        reports[name] = report
