"""The database of collections, ``knowledge.db``, with all its SQL. Every method blocks; one thread calls them.

The standard library's SQLite often cannot load extensions, so this is a separate file, opened through ``apsw``.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import apsw
import sqlite_vec

from ..protocol.error_codes import RateLimitedError, ServiceUnavailableError
from .full_text_query import match_expression, spaced
from .knowledge_records import (
    FLOAT_BYTES,
    KNOWLEDGE_DATABASE,
    NewDocument,
    Passage,
    Scope,
    ScopeLimits,
    StoredDocument,
    WaitingChunk,
)

_SCHEMA_VERSION: Final = 1
_BUSY_MS: Final = 5_000
_MAX_SCOPES: Final = 1_000
"""The maximum number of scopes (collections times principals). Each has some tables."""
_TITLE_WEIGHT: Final = 3.0
_HEADING_WEIGHT: Final = 2.0
"""A word in a title or heading counts as much as several words in the text."""

_DOCUMENTS: Final = (
    "SELECT name, title, bytes, (SELECT count(*) FROM chunk WHERE document_id = document.id), digest, file_state, "
    "added_at, embedded FROM document WHERE scope_id = (SELECT id FROM scope WHERE collection = ? AND owner = ?)"
)


class KnowledgeDatabase:
    """The open database."""

    def __init__(self, path: Path) -> None:
        """
        Raises:
            ServiceUnavailableError: the file cannot be opened, or a newer version has written it.
        """
        with _readable():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._connection = apsw.Connection(str(path))
            self._connection.set_busy_timeout(_BUSY_MS)
            self._connection.enable_load_extension(True)
            self._connection.load_extension(sqlite_vec.loadable_path())
            self._connection.enable_load_extension(False)
            self._connection.pragma("journal_mode", "wal")
            self._connection.pragma("foreign_keys", True)
            self._create()

    def _create(self) -> None:
        version = self._connection.pragma("user_version")
        if version > _SCHEMA_VERSION:
            raise ServiceUnavailableError(
                f"{KNOWLEDGE_DATABASE} is from a newer version of toold; start that version, or remove the file.",
                transient=False,
            )
        if version == 0:
            with self._connection:
                self._connection.execute((files(__package__) / "knowledge_schema.sql").read_text(encoding="utf-8"))
                self._connection.pragma("user_version", _SCHEMA_VERSION)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    # --- documents ---------------------------------------------------------------------------------------------------

    def documents(self, scope: Scope) -> dict[str, StoredDocument]:
        """The documents of a scope by name, sorted."""
        with _readable():
            rows = self._rows(f"{_DOCUMENTS} ORDER BY name", scope)
        return {row[0]: _document(row) for row in rows}

    def document(self, scope: Scope, name: str) -> StoredDocument | None:
        """The document with this name."""
        with _readable():
            rows = self._rows(f"{_DOCUMENTS} AND name = ?", (*scope, name))
        return _document(rows[0]) if rows else None

    def put(self, scope: Scope, document: NewDocument, limits: ScopeLimits) -> None:
        """Store a document atomically. It replaces a document with the same name.

        Raises:
            RateLimitedError: the scope would exceed a limit.
        """
        with _readable(), self._connection:
            scope_id = self._scope_id(scope)
            self._delete(scope_id, document.name)
            self._check_room(scope_id, document, limits)
            [(document_id,)] = self._rows(
                "INSERT INTO document (scope_id, name, title, bytes, digest, file_state, added_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (
                    scope_id,
                    document.name,
                    document.title,
                    document.size,
                    document.digest,
                    document.file_state,
                    time.time(),
                ),
            )
            for number, chunk in enumerate(document.chunks, start=1):
                [(chunk_id,)] = self._rows(
                    "INSERT INTO chunk (document_id, number, line, heading, text) VALUES (?, ?, ?, ?, ?) RETURNING id",
                    (document_id, number, chunk.line, chunk.heading, chunk.text),
                )
                self._connection.execute(
                    f"INSERT INTO text_{scope_id} (rowid, title, heading, text) VALUES (?, ?, ?, ?)",  # noqa: S608 - a number
                    (chunk_id, spaced(document.title), spaced(chunk.heading), spaced(chunk.text)),
                )

    def set_file_state(self, scope: Scope, name: str, file_state: str) -> None:
        """Record that a file has changed, but not its content."""
        with _readable():
            self._connection.execute(
                "UPDATE document SET file_state = ? WHERE name = ? AND scope_id = "
                "(SELECT id FROM scope WHERE collection = ? AND owner = ?)",
                (file_state, name, *scope),
            )

    def remove(self, scope: Scope, names: Sequence[str]) -> int:
        """Remove documents with their chunks and embeddings; returns the number of documents."""
        removed = 0
        with _readable(), self._connection:
            scope_id = self._find_scope(scope)
            if scope_id is not None:
                removed = sum(self._delete(scope_id, name) for name in names)
        return removed

    def keep_only_folders(self, collections: Sequence[str]) -> None:
        """Remove the documents of folders, except those of these collections."""
        with _readable(), self._connection:
            for scope_id, collection in self._rows("SELECT id, collection FROM scope WHERE owner = ''"):
                if collection not in collections:
                    self._connection.execute(f"DROP TABLE text_{scope_id}")
                    self._connection.execute(f"DROP TABLE IF EXISTS vector_{scope_id}")
                    self._connection.execute("DELETE FROM scope WHERE id = ?", (scope_id,))

    # --- embeddings --------------------------------------------------------------------------------------------------

    def waiting_owners(self, collection: str, model: str) -> list[str]:
        """The owners of documents of a collection that wait for embeddings of this model."""
        with _readable():
            rows = self._rows(
                "SELECT DISTINCT owner FROM scope JOIN document ON scope_id = scope.id WHERE collection = ? AND "
                "(embedded = 0 OR model IS NOT ?) AND EXISTS (SELECT 1 FROM chunk WHERE document_id = document.id)",
                (collection, model),
            )
        return [owner for (owner,) in rows]

    def embedded_and_waiting(self, scope: Scope, model: str) -> tuple[int, int]:
        """The number of documents with embeddings of this model, and the number of documents that wait for them."""
        with _readable():
            [(embedded, waiting)] = self._rows(
                "SELECT coalesce(sum(embedded = 1 AND model IS ?1), 0), "
                "coalesce(sum(embedded = 0 OR model IS NOT ?1), 0) "
                "FROM document JOIN scope ON scope.id = scope_id WHERE collection = ?2 AND owner = ?3 AND "
                "EXISTS (SELECT 1 FROM chunk WHERE document_id = document.id)",
                (model, *scope),
            )
        return embedded, waiting

    def waiting_chunks(self, scope: Scope, model: str, limit: int) -> list[WaitingChunk]:
        """Chunks that wait for embeddings of this model, in the order of their documents. Embeddings of another model
        are removed first, because they cannot be compared.
        """
        rows: list[Any] = []
        with _readable(), self._connection:
            scope_id = self._find_scope(scope)
            if scope_id is not None:
                if self._embeddings_of(scope_id)[0] != model:
                    self._forget_embeddings(scope_id, model)
                rows = self._rows(
                    "SELECT chunk.id, title, heading, text FROM chunk JOIN document ON document.id = document_id "
                    "WHERE scope_id = ? AND embedded = 0 AND vector IS NULL ORDER BY chunk.id LIMIT ?",
                    (scope_id, limit),
                )
        return [WaitingChunk(*row) for row in rows]

    def store_vectors(self, scope: Scope, model: str, vectors: Mapping[int, bytes]) -> None:
        """Store embeddings of chunks. A document is searched by embeddings once all its chunks have them. Chunks that
        were removed meanwhile are ignored.
        """
        with _readable(), self._connection:
            scope_id = self._find_scope(scope)
            dimensions = len(next(iter(vectors.values()))) // FLOAT_BYTES
            if scope_id is None or self._embeddings_of(scope_id)[0] != model:
                return
            if self._embeddings_of(scope_id) != (model, dimensions):
                self._forget_embeddings(scope_id, model, dimensions)
            for chunk_id, vector in vectors.items():
                self._connection.execute("UPDATE chunk SET vector = ? WHERE id = ?", (vector, chunk_id))
            complete = self._rows(
                "UPDATE document SET embedded = 1 WHERE scope_id = ? AND embedded = 0 AND NOT EXISTS "
                "(SELECT 1 FROM chunk WHERE document_id = document.id AND vector IS NULL) RETURNING id",
                (scope_id,),
            )
            for document in complete:
                self._connection.execute(
                    f"INSERT INTO vector_{scope_id} (rowid, embedding) "  # noqa: S608 - a number
                    "SELECT id, vector FROM chunk WHERE document_id = ?",
                    document,
                )
                self._connection.execute("UPDATE chunk SET vector = NULL WHERE document_id = ?", document)

    def _embeddings_of(self, scope_id: int) -> tuple[str | None, int | None]:
        [(model, dimensions)] = self._rows("SELECT model, dimensions FROM scope WHERE id = ?", (scope_id,))
        return model, dimensions

    def _forget_embeddings(self, scope_id: int, model: str, dimensions: int | None = None) -> None:
        """Remove all embeddings of the scope, so that its documents wait for embeddings of this model."""
        self._connection.execute(f"DROP TABLE IF EXISTS vector_{scope_id}")
        self._connection.execute(
            "UPDATE chunk SET vector = NULL WHERE vector IS NOT NULL AND document_id IN "
            "(SELECT id FROM document WHERE scope_id = ?)",
            (scope_id,),
        )
        self._connection.execute("UPDATE document SET embedded = 0 WHERE scope_id = ?", (scope_id,))
        self._connection.execute(
            "UPDATE scope SET model = ?, dimensions = ? WHERE id = ?", (model, dimensions, scope_id)
        )
        if dimensions is not None:
            self._connection.execute(
                f"CREATE VIRTUAL TABLE vector_{scope_id} "
                f"USING vec0(embedding float[{dimensions}] distance_metric=cosine)"
            )

    # --- search ------------------------------------------------------------------------------------------------------

    def search_text(self, scope: Scope, question: str, limit: int) -> list[tuple[float, int]]:
        """The chunks with words of the question, best first, as BM25 score (lower is better) and id."""
        expression = match_expression(question)
        rows: list[Any] = []
        with _readable():
            scope_id = self._find_scope(scope)
            if scope_id is not None and expression is not None:
                rows = self._rows(
                    f"SELECT bm25(text_{scope_id}, {_TITLE_WEIGHT}, {_HEADING_WEIGHT}, 1.0) AS score, rowid "  # noqa: S608 - numbers
                    f"FROM text_{scope_id} WHERE text_{scope_id} MATCH ? ORDER BY score LIMIT ?",
                    (expression, limit),
                )
        return [(score, chunk_id) for score, chunk_id in rows]

    def search_vectors(self, scope: Scope, model: str, vector: bytes, limit: int) -> list[tuple[float, int]]:
        """The chunks whose embeddings are nearest to this one, nearest first, as cosine distance and id."""
        rows: list[Any] = []
        with _readable():
            scope_id = self._find_scope(scope)
            if scope_id is not None and self._embeddings_of(scope_id) == (model, len(vector) // FLOAT_BYTES):
                rows = self._rows(
                    f"SELECT distance, rowid FROM vector_{scope_id} "  # noqa: S608 - a number
                    "WHERE embedding MATCH ? AND k = ? ORDER BY distance",
                    (vector, limit),
                )
        return [(distance, chunk_id) for distance, chunk_id in rows if distance is not None]

    def passage(self, chunk_id: int) -> Passage | None:
        """The chunk with this id; None if it was removed."""
        with _readable():
            rows = self._rows(
                "SELECT scope.collection, document.name, document.title, chunk.number, chunk.line, chunk.heading, "
                "chunk.text FROM chunk JOIN document ON document.id = chunk.document_id "
                "JOIN scope ON scope.id = document.scope_id WHERE chunk.id = ?",
                (chunk_id,),
            )
        return Passage(*rows[0]) if rows else None

    # --- internals ---------------------------------------------------------------------------------------------------

    def _rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        rows: list[Any] = self._connection.execute(statement, tuple(values)).fetchall()
        return rows

    def _find_scope(self, scope: Scope) -> int | None:
        rows = self._rows("SELECT id FROM scope WHERE collection = ? AND owner = ?", scope)
        return int(rows[0][0]) if rows else None

    def _scope_id(self, scope: Scope) -> int:
        scope_id = self._find_scope(scope)
        if scope_id is not None:
            return scope_id
        [(scopes,)] = self._rows("SELECT count(*) FROM scope")
        if scopes >= _MAX_SCOPES:
            raise RateLimitedError(
                f"There are already {scopes:,} collections of principals, the maximum.", transient=False
            )
        [(scope_id,)] = self._rows("INSERT INTO scope (collection, owner) VALUES (?, ?) RETURNING id", scope)
        self._connection.execute(
            f"CREATE VIRTUAL TABLE text_{scope_id} USING fts5(title, heading, text, content='', "
            "contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2')"
        )
        return int(scope_id)

    def _delete(self, scope_id: int, name: str) -> int:
        values = (scope_id, name)
        tables = [f"text_{scope_id}"]
        if self._embeddings_of(scope_id)[1] is not None:
            tables.append(f"vector_{scope_id}")
        for table in tables:
            self._connection.execute(
                f"DELETE FROM {table} WHERE rowid IN (SELECT chunk.id FROM chunk JOIN document "  # noqa: S608 - a name above
                "ON document.id = document_id WHERE scope_id = ? AND name = ?)",
                values,
            )
        return len(self._rows("DELETE FROM document WHERE scope_id = ? AND name = ? RETURNING id", values))

    def _check_room(self, scope_id: int, document: NewDocument, limits: ScopeLimits) -> None:
        [(documents, size)] = self._rows(
            "SELECT count(*), coalesce(sum(bytes), 0) FROM document WHERE scope_id = ?", (scope_id,)
        )
        [(chunks,)] = self._rows(
            "SELECT count(*) FROM chunk JOIN document ON document.id = document_id WHERE scope_id = ?", (scope_id,)
        )
        for what, count, limit in (
            ("documents", documents + 1, limits.documents),
            ("bytes", size + document.size, limits.size),
            ("chunks", chunks + len(document.chunks), limits.chunks),
        ):
            if count > limit:
                raise RateLimitedError(
                    f"With {document.name[:200]!r}, the collection would have {count:,} {what}, and {limit:,} are "
                    f"allowed (max_{what}). Remove documents, or ask the operator for more.",
                    transient=False,
                )


def _document(row: Any) -> StoredDocument:
    name, title, size, chunks, digest, file_state, added_at, embedded = row
    return StoredDocument(name, title, size, chunks, digest, file_state, added_at, bool(embedded))


@contextmanager
def _readable() -> Iterator[None]:
    """Converts errors of the database and the disk to errors of calls."""
    try:
        yield
    except (apsw.Error, OSError) as error:
        full = isinstance(error, apsw.FullError)
        raise ServiceUnavailableError(
            f"{KNOWLEDGE_DATABASE} cannot be {'written: the disk is full' if full else 'used'} "
            f"({type(error).__name__}); the operator finds it in the daemon's state directory.",
            transient=True,
        ) from error
