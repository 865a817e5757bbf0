"""The values that the database of collections stores and returns."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .chunking import Chunk

KNOWLEDGE_DATABASE: Final = "knowledge.db"
"""The name of the file in the state directory."""
FLOAT_BYTES: Final = 4
"""The size of a number of an embedding. Embeddings are stored as 32-bit floats in the machine's byte order."""


class Scope(NamedTuple):
    """Documents that are searched together."""

    collection: str
    owner: str
    """The principal that owns the documents; empty for the documents of a folder."""


class ScopeLimits(NamedTuple):
    """The limits of one scope."""

    documents: int
    size: int
    chunks: int


class NewDocument(NamedTuple):
    """A document to store."""

    name: str
    title: str
    size: int
    """The document's bytes."""
    digest: bytes
    file_state: str | None
    chunks: Sequence[Chunk]


class StoredDocument(NamedTuple):
    """A stored document without its text."""

    name: str
    title: str
    size: int
    chunks: int
    digest: bytes
    file_state: str | None
    added_at: float
    embedded: bool


class WaitingChunk(NamedTuple):
    """A chunk without an embedding."""

    id: int
    title: str
    heading: str
    text: str


class Passage(NamedTuple):
    """A chunk with its document."""

    collection: str
    document: str
    title: str
    number: int
    line: int
    heading: str
    text: str
