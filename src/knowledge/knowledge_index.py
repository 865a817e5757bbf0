"""Stores documents in collections, and searches them. One thread works on the database, another one cuts documents."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

from ..tools import WorkThread
from .chunking import cut_document
from .document_text import read_document
from .knowledge_records import NewDocument, Passage, Scope, ScopeLimits, StoredDocument, WaitingChunk
from .knowledge_settings import CollectionSettings
from .rank_fusion import fused_scores

if TYPE_CHECKING:
    from .knowledge_database import KnowledgeDatabase

SEARCHED: Final = 100
"""The number of chunks per ranking that are fused: twice the maximum number of passages in an answer."""
_CUT_VERSION: Final = 1
"""The version of the cutting. When it changes, all documents are cut again."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage of an answer."""

    passage: Passage
    score: float
    ranks: Mapping[str, int]
    """The rank, from 1, in each search that found the passage: ``text``, ``embeddings``."""


class KnowledgeIndex:
    """The documents of all collections. The first use opens the database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._thread = WorkThread("toold-knowledge")
        self._cutting = WorkThread("toold-documents")
        self._database: KnowledgeDatabase | None = None
        self.shared_changed = asyncio.Event()
        """Set when a document of a folder was stored."""

    async def close(self) -> None:
        """Close the database after the current work."""
        if self._database is not None:
            await self._thread.run(self._database.close)
            self._database = None
        self._thread.end()
        self._cutting.end()

    async def documents(self, scope: Scope) -> dict[str, StoredDocument]:
        """The documents of a scope by name, sorted.

        Raises:
            ServiceUnavailableError: the database cannot be used. All methods raise this error.
        """
        return await self._run(lambda database: database.documents(scope))

    async def put(
        self, scope: Scope, settings: CollectionSettings, name: str, text: str, *, file_state: str | None = None
    ) -> tuple[StoredDocument, bool]:
        """Store a document. It replaces a document with the same name. Returns the document, and whether anything has
        changed.

        Raises:
            RateLimitedError: the collection would exceed a limit.
        """
        earlier = await self._run(lambda database: database.document(scope, name))
        if earlier is not None and earlier.digest == _digest(settings, text):
            if file_state is not None:
                await self._run(lambda database: database.set_file_state(scope, name, file_state))
            return earlier, False
        document = await self._cutting.run(_cut, settings, name, text, file_state)
        stored = await self._run(partial(_put, scope, document, settings))
        if not scope.owner:
            self.shared_changed.set()
        return stored, True

    async def remove(self, scope: Scope, names: Sequence[str]) -> int:
        """Remove documents; returns the number of removed documents."""
        return await self._run(lambda database: database.remove(scope, names))

    async def keep_only_folders(self, collections: Sequence[str]) -> None:
        """Remove the documents of folders, except those of these collections."""
        await self._run(lambda database: database.keep_only_folders(collections))

    async def search(
        self,
        scopes: Sequence[Scope],
        question: str,
        top_k: int,
        vectors: Mapping[Scope, tuple[str, bytes]] = MappingProxyType({}),
    ) -> list[FoundPassage]:
        """The best passages of these scopes, best first. ``vectors`` has the model and the question's embedding of each
        scope; a scope without one is searched by full text only.
        """
        return await self._run(partial(_search, scopes, question, top_k, vectors))

    async def waiting_owners(self, collection: str, model: str) -> list[str]:
        """The owners of documents of a collection that wait for embeddings of this model."""
        return await self._run(lambda database: database.waiting_owners(collection, model))

    async def embedded_and_waiting(self, scope: Scope, model: str) -> tuple[int, int]:
        """The number of documents with embeddings of this model, and the number of documents that wait for them."""
        return await self._run(lambda database: database.embedded_and_waiting(scope, model))

    async def waiting_chunks(self, scope: Scope, model: str, limit: int) -> list[WaitingChunk]:
        """Chunks that wait for embeddings of this model. Embeddings of another model are removed first."""
        return await self._run(lambda database: database.waiting_chunks(scope, model, limit))

    async def store_vectors(self, scope: Scope, model: str, vectors: Mapping[int, bytes]) -> None:
        """Store embeddings of chunks. A document is searched by embeddings once all its chunks have them."""
        await self._run(lambda database: database.store_vectors(scope, model, vectors))

    async def _run(self, work: "Callable[[KnowledgeDatabase], _T]") -> _T:
        return await self._thread.run(self._in_thread, work)

    def _in_thread(self, work: "Callable[[KnowledgeDatabase], _T]") -> _T:
        if self._database is None:
            from .knowledge_database import KnowledgeDatabase  # noqa: PLC0415 - its package is an extra

            self._database = KnowledgeDatabase(self._path)
        return work(self._database)


def _digest(settings: CollectionSettings, text: str) -> bytes:
    return hashlib.sha256(f"{_CUT_VERSION} {settings.cut}\n{text}".encode()).digest()


def _cut(settings: CollectionSettings, name: str, text: str, file_state: str | None) -> NewDocument:
    document = read_document(name, text)
    chunks = cut_document(document, size=settings.chunk_size, overlap=settings.chunk_overlap)
    return NewDocument(name, document.title, len(text.encode()), _digest(settings, text), file_state, chunks)


def _put(
    scope: Scope, document: NewDocument, settings: CollectionSettings, database: "KnowledgeDatabase"
) -> StoredDocument:
    database.put(scope, document, ScopeLimits(settings.max_documents, settings.max_bytes, settings.max_chunks))
    return StoredDocument(
        document.name,
        document.title,
        document.size,
        len(document.chunks),
        document.digest,
        document.file_state,
        time.time(),
        embedded=False,
    )


def _search(
    scopes: Sequence[Scope],
    question: str,
    top_k: int,
    vectors: Mapping[Scope, tuple[str, bytes]],
    database: "KnowledgeDatabase",
) -> list[FoundPassage]:
    texts = sorted(found for scope in scopes for found in database.search_text(scope, question, SEARCHED))
    near = {model: list[tuple[float, int]]() for model, _ in vectors.values()}
    for scope, (model, vector) in vectors.items():
        near[model] += database.search_vectors(scope, model, vector, SEARCHED)
    rankings = {"text": [chunk_id for _, chunk_id in texts[:SEARCHED]]}
    for model, found_by_it in near.items():  # distances of different models cannot be compared
        name = "embeddings" if len(near) == 1 else f"embeddings of {model}"
        rankings[name] = [chunk_id for _, chunk_id in sorted(found_by_it)[:SEARCHED]]
    scores = fused_scores(list(rankings.values()))
    found: list[FoundPassage] = []
    for chunk_id in list(scores)[:top_k]:
        ranks = {kind: ranking.index(chunk_id) + 1 for kind, ranking in rankings.items() if chunk_id in ranking}
        if (passage := database.passage(chunk_id)) is not None:
            found.append(FoundPassage(passage, scores[chunk_id], ranks))
    return found
