"""The collections of the settings: their tools, and the folders that they follow."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import structlog

from ..protocol.error_codes import CallError
from ..tools import FileAccess, Tool
from .collection_folder import CollectionFolder, FolderReport
from .knowledge_index import KnowledgeIndex
from .knowledge_records import KNOWLEDGE_DATABASE, Scope
from .knowledge_settings import CollectionSettings
from .knowledge_tools import Collections, knowledge_tools

_IDLE_S: Final = 3600.0
"""Without folders, there is nothing to look at until the settings change."""

_log = structlog.get_logger(__name__)


class KnowledgeHost:
    """Makes the tools of the collections, and keeps those with folders up to date."""

    def __init__(
        self,
        collections: Mapping[str, CollectionSettings],
        state_directory: Path,
        *,
        files_of: Callable[[Path], FileAccess],
        changed: Callable[[], None],
    ) -> None:
        """``files_of`` returns the access to the files of a folder; ``changed`` is called when ``tools`` changes."""
        self._index = KnowledgeIndex(state_directory / KNOWLEDGE_DATABASE)
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
        self.tools: list[Tool] = knowledge_tools(Collections(collections, self._reports), self._index)

    def apply(self, collections: Mapping[str, CollectionSettings]) -> None:
        """Replace the collections."""
        if collections != self._settings:
            self._set(collections)
            self._changed()
            self._wake.set()

    async def run(self) -> None:
        """While the daemon runs: reads the folders, and again when they have changed."""
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
                _log.warning("the collections cannot be read", reason=error.summary or error.code)

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
            _log.warning("a collection could not be updated", collection=name, reason=error.summary or error.code)
            return
        if report.problem is not None and reports[name] != report:
            _log.warning("the folder of a collection cannot be read", collection=name, reason=report.problem)
        reports[name] = report
