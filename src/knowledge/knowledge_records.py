"""The values that go into the database of collections, and come out of it."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from .chunking import Chunk

KNOWLEDGE_DATABASE: Final = "knowledge.db"
"""In the state directory."""
FLOAT_BYTES: Final = 4
"""Embeddings are stored as 32-bit numbers in the machine's order of bytes."""


class Scope(NamedTuple):
    """Documents that are searched together."""

    collection: str
    owner: str
    """The principal whose documents these are; empty: those of a folder."""


class ScopeLimits(NamedTuple):
    """How much a scope may have."""

    documents: int
    size: int
    chunks: int


class NewDocument(NamedTuple):
    """A document that is put in as a whole."""

    name: str
    title: str
    size: int
    """Its bytes."""
    digest: bytes
    file_state: str | None
    chunks: Sequence[Chunk]


class StoredDocument(NamedTuple):
    """What is known of a document without its text."""

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
