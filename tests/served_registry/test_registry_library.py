"""The served registry on a real store: what survives, what is bounded, and what happens if the disk fails."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from toold.served_registry import Kind, RegistryLibrary, RegistryRefusedError, registry_content, registry_kinds
from toold.store import KEY_BYTES, Retention, Store

Opened = Callable[[], AbstractAsyncContextManager[tuple[Store, RegistryLibrary]]]


def skill(name: str, text: str = "d") -> dict[str, Any]:
    return {"id": name, "name": name, "description": text}


def unconditional(_: str) -> None:
    """Any version may be changed."""


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """Opens the registry of one database file."""

    @asynccontextmanager
    async def opening() -> AsyncIterator[tuple[Store, RegistryLibrary]]:
        store = Store(tmp_path / "toold.db", content=str, retention=Retention(), key=b"k" * KEY_BYTES)

        async def changed(_: Kind) -> None:
            return

        library = RegistryLibrary(store.registry_entries, changed)
        try:
            await library.load()
            yield store, library
        finally:
            await store.close()

    return opening


async def test_entries_survive_a_restart(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kept versions of a prompt, agents with their ids, and deletions; older versions of prompts are dropped."""
    monkeypatch.setitem(registry_kinds.NAMES, Kind.PROMPT, registry_kinds.NAMES[Kind.PROMPT]._replace(kept_versions=2))
    async with opened() as (_, library):
        await library.create(Kind.PROMPT, {"id": "p", "template": "one"})
        for text in ("two", "three"):
            await library.replace(Kind.PROMPT, "p", {"template": text}, unconditional)
        agent_id = await library.create(Kind.AGENT, {"name": "a", "description": "d"})
        await library.create(Kind.SKILL, skill("gone"))
        await library.delete(Kind.SKILL, "gone", unconditional)
        answered = [library.answer(Kind.PROMPT, "p"), library.answer(Kind.AGENT, agent_id)]
        size = library.content.bytes
    async with opened() as (_, library):
        assert [library.answer(Kind.PROMPT, "p"), library.answer(Kind.AGENT, agent_id)] == answered
        versions = library.content.versions(Kind.PROMPT, "p")
        assert [(each.row.version, each.table["template"]) for each in versions] == [(2, "two"), (3, "three")]
        assert (library.content.count(Kind.SKILL), library.content.bytes) == (0, size)


@pytest.mark.parametrize(
    ("bound", "value", "status"),
    [("MAX_ENTRIES", 1, 409), ("MAX_ENTRY_BYTES", 60, 413), ("MAX_CONTENT_BYTES", 150, 409)],
)
async def test_the_registry_is_bounded(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, bound: str, value: int, status: int
) -> None:
    """Beyond a bound, an entry is refused and the others stay."""
    async with opened() as (_, library):
        await library.create(Kind.SKILL, skill("first"))
        monkeypatch.setattr(registry_content, bound, value)
        with pytest.raises(RegistryRefusedError) as refused:
            await library.create(Kind.SKILL, skill("second"))
        assert refused.value.status == status
        assert library.content.count(Kind.SKILL) == 1


async def test_a_change_that_cannot_be_written_does_not_count(opened: Opened, tmp_path: Path) -> None:
    """It is refused with 503, and is not in the answers."""
    async with opened() as (_, library):
        await library.create(Kind.SKILL, skill("kept"))
        (tmp_path / "toold.db").unlink()
        for change in (
            library.create(Kind.SKILL, skill("new")),
            library.replace(Kind.SKILL, "kept", skill("kept", "other"), unconditional),
            library.delete(Kind.SKILL, "kept", unconditional),
        ):
            with pytest.raises(RegistryRefusedError) as refused:
                await change
            assert refused.value.status == 503
        assert [entry.table["description"] for entry in library.content.ordered(Kind.SKILL)] == ["d"]
