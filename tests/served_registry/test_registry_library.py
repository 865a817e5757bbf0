"""The served registry on a real store: what survives, what is bounded, and what happens if the disk fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until
from toold.served_registry import Kind, RegistryLibrary, RegistryRefusedError, registry_content, registry_kinds
from toold.store import KEY_BYTES, Retention, Store, open_sqlite_store

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
        store = open_sqlite_store(tmp_path / "toold.db", content=str, retention=Retention(), key=b"k" * KEY_BYTES)

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
        agent_id, *_ = await library.create(Kind.AGENT, {"name": "a", "description": "d"})
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


@pytest.mark.parametrize(
    ("more", "refusal"),
    [
        ({"roles": [{}] * 24_000}, "roles must have at most 32 items, and has 24,000"),
        ({"tags": [5] * 24_000}, "tags must have at most 1,000 items, and has 24,000"),
        ({f"x{number}": 1 for number in range(24_000)}, "must have at most 1,000 fields, and has 24,002"),
        (
            {"roles": [{"name": "a", "tools": [{"x": 1}] * 100}] * 32, "execution_type": "loop"},
            "has 3,200 invalid, missing or unknown fields",
        ),
    ],
)
async def test_thousands_of_invalid_fields_are_counted(opened: Opened, more: dict[str, Any], refusal: str) -> None:
    """They are refused in one sentence, most of them before each is validated."""
    async with opened() as (_, library):
        with pytest.raises(RegistryRefusedError) as refused:
            await library.create(Kind.AGENT, {"name": "n", "description": "d", **more})
        assert (len(refused.value.detail), refusal in str(refused.value)) == (1, True)


async def test_a_change_returns_its_own_entity_tag(tmp_path: Path) -> None:
    """While one change waits until it is in use, another one is made: each client gets the tag of the version that it
    made, and an entry that was deleted meanwhile is answered as it was made."""
    store = open_sqlite_store(tmp_path / "toold.db", content=str, retention=Retention(), key=b"k" * KEY_BYTES)
    going_on: list[asyncio.Future[None]] = []

    async def changed(_: Kind) -> None:
        waiting = asyncio.get_running_loop().create_future()
        going_on.append(waiting)
        await waiting

    library = RegistryLibrary(store.registry_entries, changed)
    try:
        await library.load()
        creation = asyncio.create_task(library.create(Kind.SKILL, skill("s", "0")))
        changes: list[asyncio.Task[str]] = []
        for text in ("1", "2"):
            await until(lambda: len(going_on) == len(changes) + 1)
            changes.append(asyncio.create_task(library.replace(Kind.SKILL, "s", skill("s", text), unconditional)))
        await until(lambda: len(going_on) == 3)
        latest = library.answer(Kind.SKILL, "s")[1]
        removal = asyncio.create_task(library.delete(Kind.SKILL, "s", unconditional))
        await until(lambda: len(going_on) == 4)
        for waiting in going_on:
            waiting.set_result(None)
        await removal
        tags = [(await creation)[2], *[await change for change in changes]]
        assert (len(set(tags)), tags[2]) == (3, latest)
    finally:
        await store.close()
