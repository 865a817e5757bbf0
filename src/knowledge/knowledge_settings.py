"""The settings of collections, ``[knowledge.NAME]`` in toold.toml; documented in docs/knowledge.md."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from ..protocol.home_directory import expand_home
from ..sources import keyed_table_message
from ..tools import RESERVED_COLLECTIONS

COLLECTION_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
"""The maximum length of a collection's name: ``knowledge_NAME`` is the name of a tool, which has at most 64
characters.
"""
MAX_COLLECTIONS: Final = 50
"""The maximum number of collections. Each is a tool in every listing."""
MAX_TOP_K: Final = 50
READABLE_SUFFIXES: Final = (".md", ".markdown", ".txt", ".rst", ".html", ".htm")
"""The files of a folder that are documents, unless ``include`` says otherwise."""

_Count = Annotated[int, Field(ge=1)]
_Text = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class CollectionSettings(BaseModel):
    """A collection of documents. Settings of the predecessor keep their names and defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, strict=True)

    description: _Text | None = None
    """The text that tells models when to search the collection."""
    folder: Annotated[Path, Field(strict=False)] | None = None
    """The folder whose files are the documents; None: callers add documents, which belong to their principals."""
    chunk_size: Annotated[int, Field(ge=100, le=8_000)] = 1_000
    """The maximum number of characters of a chunk."""
    chunk_overlap: Annotated[int, Field(ge=0)] = 200
    """The maximum number of characters at the end of a chunk that the next chunk repeats."""
    embedding_model: _Text | None = None
    """The model, of a configured provider, whose embeddings are also searched; None: full text only."""
    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] = 5
    """The default number of passages in an answer."""
    include: Annotated[tuple[_Text, ...], Field(strict=False, min_length=1, max_length=100)] = tuple(
        f"*{suffix}" for suffix in READABLE_SUFFIXES
    )
    """Patterns for the files of the folder that are documents."""
    refresh_s: Annotated[float, Field(ge=0.1, le=86_400, allow_inf_nan=False)] = 30.0
    """The interval between scans of the folder for changes."""
    max_documents: _Count = 2_000
    """The maximum number of documents of the folder, or of each principal."""
    max_bytes: _Count = 64 * 1024**2
    """The maximum number of bytes of their text."""
    max_chunks: Annotated[int, Field(ge=1, le=200_000)] = 50_000
    """The maximum number of their chunks. A search by embeddings compares with each chunk."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if 2 * self.chunk_overlap >= self.chunk_size:
            raise PydanticCustomError("overlap", "chunk_overlap must be less than half of chunk_size")
        if self.folder is None and "include" in self.model_fields_set:
            raise PydanticCustomError("folder", "include needs folder")
        return self

    @property
    def cut(self) -> str:
        """The settings on which the chunks of a document depend."""
        return f"{self.chunk_size}/{self.chunk_overlap}"


class KnowledgeSettingsError(ValueError):
    """Invalid settings of a collection; the message names the collection and the key."""


def read_collections(tables: object) -> dict[str, CollectionSettings]:
    """Return the settings of all collections by name.

    Raises:
        KnowledgeSettingsError: some settings are invalid.
    """
    if not isinstance(tables, Mapping):
        raise KnowledgeSettingsError(
            "must be set in toold.toml, as tables [knowledge.NAME] with the collection's settings"
        )
    if tables and find_spec("apsw") is None:
        raise KnowledgeSettingsError("needs the extra knowledge: pip install 'toold[knowledge]'")
    if len(tables) > MAX_COLLECTIONS:
        raise KnowledgeSettingsError(f"has {len(tables)} collections, at most {MAX_COLLECTIONS} are allowed")
    return {str(name): _read_collection(str(name), table) for name, table in tables.items()}


def _read_collection(name: str, table: object) -> CollectionSettings:
    if isinstance(table, CollectionSettings):
        return table
    if not COLLECTION_NAME.fullmatch(name) or name in RESERVED_COLLECTIONS:
        raise KnowledgeSettingsError(
            f"{name[:64]!r} is not a name; a collection's name is a letter and up to 39 more of A-Za-z0-9_-, "
            f"and none of {', '.join(sorted(RESERVED_COLLECTIONS))}"
        )
    if not isinstance(table, Mapping):
        raise KnowledgeSettingsError(f"{name} must be a table: [knowledge.{name}]")
    try:
        return CollectionSettings.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    message = keyed_table_message(problems, lambda _: list(CollectionSettings.model_fields))
    raise KnowledgeSettingsError(f"{name}: {message}")


def anchored_collections(tables: object, base: Path) -> object:
    """Return the tables with their folders resolved in ``base``. Other values are left to validation."""
    if not isinstance(tables, Mapping):
        return tables
    return {name: _anchored_table(table, base) for name, table in tables.items()}


def _anchored_table(table: object, base: Path) -> object:
    if isinstance(table, Mapping) and isinstance(folder := table.get("folder"), str | Path):
        anchored: dict[str, Any] = {**table, "folder": base / expand_home(folder)}
        return anchored
    return table
