"""All entries of the served registry in memory, with their references and sizes. Not thread-safe."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from ..store import RegistryEntryRow
from .registered_card import agent_card
from .registry_kinds import NAMES, REFERENCES, SHARED, Kind
from .registry_problem import RegistryRefusedError, field_problem

MAX_ENTRIES: Final = 2000
"""The maximum number of entries of one kind: ten times the number of agents that a daemon hosts."""
MAX_ENTRY_BYTES: Final = 1024**2
"""The limit for one version of an entry, as JSON; equal to the limit of the client of registries for an agent."""
MAX_CONTENT_BYTES: Final = 64 * 1024**2
"""The limit for all versions of all entries together, since all are kept in memory."""


class EntryVersion(NamedTuple):
    """One version of an entry."""

    row: RegistryEntryRow
    table: Mapping[str, Any]
    """The content of the row."""


class RegistryContent:
    """The entries by kind and id."""

    def __init__(self, rows: Iterable[RegistryEntryRow] = ()) -> None:
        self._entries: dict[Kind, dict[str, tuple[EntryVersion, ...]]] = {kind: {} for kind in Kind}
        self.bytes = 0
        """The size of all versions as JSON."""
        for row in rows:
            self.save(row)

    def save(self, row: RegistryEntryRow) -> None:
        """Adds a new version, and drops the oldest versions beyond the limit."""
        kind = Kind(row.kind)
        versions = (*self._entries[kind].get(row.id, ()), EntryVersion(row, msgspec.json.decode(row.content)))
        kept = versions[-NAMES[kind].kept_versions :]
        self.bytes += len(row.content) - sum(len(each.row.content) for each in versions[: -len(kept)])
        self._entries[kind][row.id] = kept

    def delete(self, kind: Kind, entry_id: str) -> None:
        """Drops all versions of an entry."""
        self.bytes -= sum(len(each.row.content) for each in self._entries[kind].pop(entry_id))

    def count(self, kind: Kind) -> int:
        """The number of entries of a kind."""
        return len(self._entries[kind])

    def versions(self, kind: Kind, entry_id: str) -> tuple[EntryVersion, ...]:
        """The kept versions of an entry, newest last.

        Raises:
            RegistryRefusedError: there is no such entry.
        """
        versions = self._entries[kind].get(entry_id)
        if versions is None:
            raise RegistryRefusedError(404, f"there is no {NAMES[kind].word} {entry_id[:200]!r}")
        return versions

    def newest(self, kind: Kind, entry_id: str) -> EntryVersion:
        """The newest version of an entry.

        Raises:
            RegistryRefusedError: there is no such entry.
        """
        return self.versions(kind, entry_id)[-1]

    def tables(self, kind: Kind) -> Mapping[str, Mapping[str, Any]]:
        """The newest content of all entries of a kind, by id, in the order of their creation."""
        return {entry.row.id: entry.table for entry in self.ordered(kind)}

    def ordered(self, kind: Kind) -> list[EntryVersion]:
        """The newest versions of all entries of a kind, in the order of their creation."""
        return sorted(
            (versions[-1] for versions in self._entries[kind].values()),
            key=lambda entry: (entry.row.created_at, entry.row.id),
        )

    def view(self, kind: Kind, entry: EntryVersion, known: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """An entry in the form of answers. ``known`` is the result of ``references``, to reuse for many agents."""
        row = entry.row
        times = {"created_at": _time(row.created_at), "updated_at": _time(row.changed_at)}
        match kind:
            case Kind.AGENT:
                return agent_card(row.id, entry.table, times, known or self.references())
            case Kind.ARCHITECTURE:
                return {"architecture_id": row.id, **entry.table}
            case Kind.PROMPT:
                return {**entry.table, "name": row.id, "version": row.version, **times}
            case _:
                return dict(entry.table)

    def references(self) -> dict[str, Mapping[str, Mapping[str, Any]]]:
        """The other entries that the cards of agents contain."""
        return {
            "skills": self.tables(Kind.SKILL),
            "tools": self.tables(Kind.TOOL),
            "rag_configs": self.tables(Kind.RAG),
        }

    def check_references(self, kind: Kind, table: Mapping[str, Any]) -> None:
        """Checks that all entries named in an entry exist.

        Raises:
            RegistryRefusedError: some are missing.
        """
        problems = [
            field_problem(path, f"there is no {NAMES[referred].word} {entry_id!r}")
            for path, referred, entry_id in _references_of(kind, table)
            if entry_id not in self._entries[referred]
        ]
        if problems:
            raise RegistryRefusedError(422, problems)

    def check_unused(self, kind: Kind, entry_id: str) -> None:
        """Checks that no other entry names this entry.

        Raises:
            RegistryRefusedError: another entry names it.
        """
        users = [
            f"{NAMES[user].word} {used_by!r}"
            for user in (Kind.AGENT, Kind.ARCHITECTURE)
            for used_by, versions in self._entries[user].items()
            if any(
                (referred, each) == (kind, entry_id) for _, referred, each in _references_of(user, versions[-1].table)
            )
        ]
        if users:
            shown = ", ".join(users[:5]) + (f" and {len(users) - 5} more" if len(users) > 5 else "")
            raise RegistryRefusedError(409, f"{NAMES[kind].word} {entry_id!r} is used by {shown}; change them first")

    def check_space(self, kind: Kind, content: bytes, *, new: bool) -> None:
        """Checks that an entry fits.

        Raises:
            RegistryRefusedError: the entry does not fit.
        """
        if len(content) > MAX_ENTRY_BYTES:
            raise RegistryRefusedError(413, f"the {NAMES[kind].word} has more than {MAX_ENTRY_BYTES} bytes")
        if new and self.count(kind) >= MAX_ENTRIES:
            message = f"the registry has {MAX_ENTRIES} entries of this kind, which is the most; delete some"
            raise RegistryRefusedError(409, message)
        if self.bytes + len(content) > MAX_CONTENT_BYTES:
            message = f"the registry has {MAX_CONTENT_BYTES} bytes, which is the most; delete some entries"
            raise RegistryRefusedError(409, message)


def _references_of(kind: Kind, table: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Kind, str]]:
    """The place, kind and id of each entry that this entry names."""
    fields = {Kind.AGENT: REFERENCES, Kind.ARCHITECTURE: SHARED}.get(kind, {})
    for field, referred in fields.items():
        for index, entry_id in enumerate(table[field]):
            yield (field, index), referred, entry_id
    if kind is Kind.ARCHITECTURE:
        for index, member in enumerate(table["agents"]):
            yield ("agents", index, "agent_id"), Kind.AGENT, member["agent_id"]


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
