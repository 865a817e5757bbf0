"""Conversations in the database: bound to their principal, continued in order, and deleted when they expire."""

import time
from collections.abc import Callable
from typing import Any

from toold.store import ConversationUpdate, Retention, Store, StoredTurn

OpenStore = Callable[..., Store]


def make_update(conversation_id: str = "c-1", **fields: Any) -> ConversationUpdate:
    """One turn that begins a conversation, unless ``fields`` say otherwise."""
    plain: dict[str, Any] = {
        "id": conversation_id,
        "principal": "local",
        "at": time.time(),
        "state": "null",
        "bytes": 10,
        "first_number": 1,
        "last_number": 1,
        "turns": [StoredTurn(1, 5, '{"role":"user"}')],
        "session_id": "s-1",
        "call_id": "call-1",
    }
    return ConversationUpdate(**plain | fields)


async def kept(store: Store, number: int) -> list[str]:
    """The ids of the first ``number`` conversations that exist."""
    names = [f"c-{n}" for n in range(1, number + 1)]
    return [name for name in names if await store.conversations.load(name, "local")]


async def forgotten(store: Store, retention: Retention, number: int, left: int) -> list[str]:
    """The ids of the conversations that exist after retention has left ``left`` of them."""
    store.apply(str, retention)
    while len(names := await kept(store, number)) > left:
        pass
    return names


async def test_turns_are_loaded_in_order(store: Store) -> None:
    """Turns are loaded in the order of their calls."""
    await store.conversations.update(make_update(turns=[StoredTurn(1, 5, '"a"'), StoredTurn(2, 6, '"b"')]))
    await store.conversations.update(make_update(state='{"n":1}', turns=[StoredTurn(3, 7, '"c"')]))
    result = await store.conversations.load("c-1", "local")
    assert result is not None
    assert result.turns == [StoredTurn(1, 5, '"a"'), StoredTurn(2, 6, '"b"'), StoredTurn(3, 7, '"c"')]
    assert result.state == '{"n":1}'


async def test_turns_before_the_first_number_are_deleted(store: Store) -> None:
    """A conversation that is too long loses its first turns."""
    await store.conversations.update(make_update(turns=[StoredTurn(1, 5, '"a"'), StoredTurn(2, 6, '"b"')]))
    await store.conversations.update(make_update(first_number=2, last_number=3, turns=[StoredTurn(3, 7, '"c"')]))
    result = await store.conversations.load("c-1", "local")
    assert result is not None
    assert [turn.number for turn in result.turns] == [2, 3]
    await store.conversations.update(make_update(first_number=5, last_number=4, turns=[]))
    result = await store.conversations.load("c-1", "local")
    assert result is not None
    assert (result.turns, result.last_number) == ([], 4)


async def test_another_principal_finds_nothing(store: Store) -> None:
    """Only its principal can load a conversation."""
    await store.conversations.update(make_update())
    assert await store.conversations.load("c-1", "somebody") is None
    assert await store.conversations.load("c-2", "local") is None


async def test_conversation_survives_a_restart(open_again: OpenStore) -> None:
    """The next process loads a stored conversation."""
    first = open_again()
    await first.conversations.update(make_update())
    await first.close()
    second = open_again()
    assert await second.conversations.load("c-1", "local") is not None
    await second.close()


async def test_unused_conversations_expire(store: Store) -> None:
    """Conversations expire with their turns; others stay."""
    day = 86400.0
    await store.conversations.update(make_update("c-1", at=time.time() - 9 * day))
    await store.conversations.update(make_update("c-2", at=time.time() - 9 * day))
    await store.conversations.update(make_update("c-2", turns=[]))
    assert await forgotten(store, Retention(conversation_days=8), 2, 1) == ["c-2"]
    await store.conversations.update(make_update("c-1", turns=[]))
    repeat = await store.conversations.load("c-1", "local")
    assert repeat is not None
    assert repeat.turns == []


async def test_least_recently_used_conversations_are_deleted_beyond_the_size_limit(store: Store) -> None:
    """Beyond the size limit of all conversations, the least recently used is deleted."""
    now = time.time()
    for number, age in ((1, 10), (2, 30), (3, 20)):
        await store.conversations.update(make_update(f"c-{number}", at=now - age, bytes=100))
    assert await forgotten(store, Retention(conversation_bytes=150), 3, 1) == ["c-1"]


async def test_conversations_do_not_displace_audit_rows(store: Store, row: Callable[..., Any]) -> None:
    """The size of conversations does not count towards the size limit of the audit rows."""
    store.audit.record(row())
    await store.flush()
    body = '"' + "x" * 1_000_000 + '"'
    await store.conversations.update(make_update("c-1", bytes=len(body), turns=[StoredTurn(1, 5, body)]))
    await store.conversations.update(make_update("c-2", at=0.0, turns=[]))
    await forgotten(store, Retention(bytes=800_000), 2, 1)  # once c-2 is deleted, retention has run
    assert len(await store.audit.recent(10)) == 1
