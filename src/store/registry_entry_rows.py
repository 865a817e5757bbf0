"""The versions of the served registry's entries."""

from typing import NamedTuple


class RegistryEntryRow(NamedTuple):
    """One version of an entry."""

    kind: str
    id: str
    version: int
    content: bytes
    """JSON, opaque to the store."""
    created_at: float
    """When the entry was created, as a Unix time in seconds."""
    changed_at: float
    """When this version was created, as a Unix time in seconds."""


class RegistryEntrySaved(NamedTuple):
    """Commit entry: an entry of the registry has a new version."""

    row: RegistryEntryRow
    kept: int
    """How many versions of the entry the store keeps, including this one."""


class RegistryEntryDeleted(NamedTuple):
    """Commit entry: an entry of the registry was deleted, with all its versions."""

    kind: str
    id: str


RegistryEntryChange = RegistryEntrySaved | RegistryEntryDeleted
