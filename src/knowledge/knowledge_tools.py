"""The tools of collections. ``knowledge`` searches all collections, ``knowledge_NAME`` one; others list, add and
remove.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from ..protocol.error_codes import CallError, InvalidArgumentsError
from ..tools import (
    COLLECTION_PREFIX,
    KNOWLEDGE_SOURCE,
    MAX_TEXT_BYTES,
    Arguments,
    LookupContext,
    Tool,
    ToolOutput,
    tool,
)
from .collection_access import Collections
from .document_embedding import DocumentEmbedding, reason_of
from .knowledge_index import KnowledgeIndex
from .knowledge_records import StoredDocument
from .knowledge_settings import MAX_TOP_K
from .passage_search import PassageSearch

EMBED_TOOL: Final = "knowledge_embed"

MAX_QUESTION_CHARS: Final = 4_000
_MAX_LISTED: Final = 1_000
EMBED_TIMEOUT_S: Final = 300.0
"""The timeout of a call that makes embeddings. The next call continues."""

_Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_QUESTION_CHARS)]
_TopK = Annotated[int, Field(ge=1, le=MAX_TOP_K)]
_DocumentName = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]+$")]
_Collection = Annotated[str, StringConstraints(min_length=1, max_length=40)]


class CollectionArguments(Arguments):
    """A question to one collection."""

    query: _Question = Field(description="A question, or words to find.")
    top_k: _TopK | None = Field(default=None, description="Number of passages.")


class KnowledgeArguments(CollectionArguments):
    """A question to several collections."""

    collections: Annotated[list[_Collection], Field(max_length=50)] = Field(
        default=[], description="The collections to search; all if empty."
    )


class AddArguments(Arguments):
    """A document."""

    name: _DocumentName | None = Field(
        default=None,
        description="Replaces your document of this name. Its suffix decides the format: .md, .html, else plain text.",
    )
    text: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT_BYTES, description="The whole text.")
    file: str | None = Field(default=None, min_length=1, description="A text file of the workspace, instead of text.")
    collection: _Collection | None = Field(default=None, description="Needed if there are several to add to.")


class RemoveArguments(Arguments):
    """Documents."""

    names: Annotated[list[_DocumentName], Field(min_length=1, max_length=100)] = Field(description="Their names.")
    collection: _Collection | None = Field(default=None, description="Needed if there are several to add to.")


class ListArguments(Arguments):
    """The documents to list."""

    collection: _Collection | None = Field(default=None, description="One collection, with its documents.")
    limit: int = Field(default=100, ge=1, le=_MAX_LISTED, description="Maximum number of documents.")
    after: str | None = Field(default=None, max_length=500, description="List only documents after this name.")


class WaitingEmbeddingsArguments(Arguments):
    """The owner of the documents."""

    collection: _Collection = Field(description="The collection.")


class KnowledgeTools:
    """Makes the tools of the collections."""

    def __init__(self, collections: Collections, index: KnowledgeIndex, embedding: DocumentEmbedding) -> None:
        self._collections = collections
        self._index = index
        self._embedding = embedding
        self._search = PassageSearch(collections, index, embedding)
        self._embeds = any(settings.embedding_model for settings in collections.settings.values())

    def all(self) -> list[Tool]:
        """The tools. None without collections, because a listing costs every client tokens."""
        settings = self._collections.settings
        if not settings:
            return []
        tools = [self._knowledge(), self._knowledge_list(), *map(self._knowledge_of, settings)]
        if any(each.folder is None for each in settings.values()):
            tools += [self._knowledge_add(), self._knowledge_remove()]
        if self._embeds:
            tools.append(self._knowledge_embed())
        return [replace(each, source=KNOWLEDGE_SOURCE) for each in tools]

    def _knowledge(self) -> Tool:
        @tool("knowledge", read_only=True, open_world=self._embeds, idempotent=True, timeout_s=EMBED_TIMEOUT_S)
        async def knowledge(arguments: KnowledgeArguments, context: LookupContext) -> ToolOutput:
            """Search documents for passages that answer a question. Each passage has its source: document, heading,
            line and an id to cite. knowledge_list shows the collections.
            """
            names = self._collections.chosen(arguments.collections, context)
            return await self._search.answer(names, arguments.query, arguments.top_k, context)

        return knowledge

    def _knowledge_of(self, name: str) -> Tool:
        settings = self._collections.settings[name]

        async def search(arguments: CollectionArguments, context: LookupContext) -> ToolOutput:
            return await self._search.answer([name], arguments.query, arguments.top_k, context)

        described = settings.description or f"the documents of the collection {name}"
        search.__doc__ = f"Search {described.rstrip('.')}. Passages come with their source and an id to cite."
        asks = settings.embedding_model is not None
        return tool(
            f"{COLLECTION_PREFIX}{name}", read_only=True, open_world=asks, idempotent=True, timeout_s=EMBED_TIMEOUT_S
        )(search)

    def _knowledge_add(self) -> Tool:
        @tool("knowledge_add", read_only=False, open_world=self._embeds, idempotent=True, timeout_s=EMBED_TIMEOUT_S)
        async def knowledge_add(arguments: AddArguments, context: LookupContext) -> dict[str, Any]:
            """Add a document to your documents, or replace it: either `name` and `text`, or a `file` of the workspace.
            Only you can find it.
            """
            collection = self._collections.writable(arguments.collection, context)
            name, text = await _document_of(arguments, context)
            scope = self._collections.scope(collection, context.principal)
            settings = self._collections.settings[collection]
            stored, changed = await self._index.put(scope, settings, name, text)
            notes = []
            if settings.embedding_model is not None:
                try:
                    await self._embedding.embed_waiting(scope, settings.embedding_model, context)
                except CallError as error:
                    notes = [f"It can be found by full text, and waits for its embeddings: {reason_of(error)}."]
            return {"collection": collection, **_document(stored), "changed": changed, "notes": notes}

        return knowledge_add

    def _knowledge_remove(self) -> Tool:
        @tool("knowledge_remove", read_only=False, open_world=False, idempotent=True, destructive=True)
        async def knowledge_remove(arguments: RemoveArguments, context: LookupContext) -> dict[str, Any]:
            """Remove documents that you added. `removed` is the number of removed documents."""
            collection = self._collections.writable(arguments.collection, context)
            removed = await self._index.remove(self._collections.scope(collection, context.principal), arguments.names)
            return {"collection": collection, "removed": removed}

        return knowledge_remove

    def _knowledge_embed(self) -> Tool:
        @tool(EMBED_TOOL, read_only=True, open_world=True, idempotent=True, timeout_s=EMBED_TIMEOUT_S)
        async def knowledge_embed(arguments: WaitingEmbeddingsArguments, context: LookupContext) -> dict[str, Any]:
            """Make the missing embeddings of a collection now, at your expense. Otherwise the daemon makes them
            later.
            """
            [name] = self._collections.chosen([arguments.collection], context)
            model = self._collections.settings[name].embedding_model
            if model is None:
                raise InvalidArgumentsError(f"collection: {name} is searched by full text only (no embedding_model).")
            scope = self._collections.scope(name, context.principal)
            return {"collection": name, "chunks": await self._embedding.embed_waiting(scope, model, context)}

        return knowledge_embed

    def _knowledge_list(self) -> Tool:
        @tool("knowledge_list", read_only=True, open_world=False, idempotent=True)
        async def knowledge_list(arguments: ListArguments, context: LookupContext) -> dict[str, Any]:
            """List the collections that you can search; with `collection`, also its documents."""
            named = [] if arguments.collection is None else [arguments.collection]
            shown = []
            for name in self._collections.chosen(named, context):
                stored = await self._index.documents(self._collections.scope(name, context.principal))
                data = _collection(name, self._collections, stored.values())
                if named:
                    rest = [each for each in stored.values() if arguments.after is None or each.name > arguments.after]
                    data["listed"] = [_document(each) for each in rest[: arguments.limit]]
                    data["more"] = len(rest) > arguments.limit
                shown.append(data)
            return {"collections": shown}

        return knowledge_list


async def _document_of(arguments: AddArguments, context: LookupContext) -> tuple[str, str]:
    """The name and text of the document.

    Raises:
        CallError: text and file are missing, the text is too long, or the file cannot be read.
    """
    if (arguments.text is None) == (arguments.file is None):
        raise InvalidArgumentsError("text: send either text, with a name, or file.")
    if arguments.file is not None:
        read = await context.files.read_text(arguments.file)
        return arguments.name or read.name, read.text
    if arguments.name is None:
        raise InvalidArgumentsError("name: is required with text.")
    text = arguments.text or ""
    if len(text.encode(errors="replace")) > MAX_TEXT_BYTES:
        raise InvalidArgumentsError(f"text: has more than {MAX_TEXT_BYTES:,} bytes; divide the document.")
    return arguments.name, text


def _collection(name: str, collections: Collections, stored: Iterable[StoredDocument]) -> dict[str, Any]:
    settings, report = collections.settings[name], collections.reports.get(name)
    documents = list(stored)
    return {
        "collection": name,
        "description": settings.description,
        "writable": settings.folder is None,
        "documents": len(documents),
        "bytes": sum(each.size for each in documents),
        "chunks": sum(each.chunks for each in documents),
        "embedding_model": settings.embedding_model,
        "embedded": sum(each.embedded for each in documents),
        "notes": collections.notes([name]),
        "left_out": [{"file": file, "reason": reason} for file, reason in report.left_out] if report else [],
        "left_out_count": report.left_out_count if report else 0,
    }


def _document(stored: StoredDocument) -> dict[str, Any]:
    return {
        "name": stored.name,
        "title": stored.title,
        "bytes": stored.size,
        "chunks": stored.chunks,
        "added_at": datetime.fromtimestamp(stored.added_at, UTC).isoformat(timespec="seconds"),
    }
