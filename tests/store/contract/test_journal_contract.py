"""The journal on each database: starts, ends, results and sessions."""

import asyncio
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.contract.conftest import OpenStore
from tests.store.contract.stored_calls import KEY_HASH, Calls, stored
from toold.store import Retention, Store
from toold.store.postgres.pg_values import pg_text, text_of


async def test_a_call_is_read_back_with_its_session(store: Store, call: Calls) -> None:
    """A session is found by its key's hash, with everything needed to replay its calls."""
    store.sessions.open(call.session)
    assert await store.journal.start(call.starts("a"))
    ended_at = time.time()
    await store.journal.end(call.ends("a", b"[1]"))
    session = await store.sessions.find_by_key_hash(KEY_HASH)
    assert session is not None
    assert (session.row.id, session.row.label, session.row.toolset, session.more) == (
        "s-1",
        "a label",
        "standard",
        False,
    )
    assert abs(session.row.opened_at - call.session.opened_at) < 0.5
    (read,) = session.calls
    assert (read.request_key, read.state, read.result, read.tool) == ("a", "done", b"[1]", "chat")
    assert (read.arguments_hash, read.local, read.echo_id, read.started) == (b"arguments of a", False, False, True)
    assert abs(read.at - ended_at) < 0.5
    assert await store.sessions.find_by_key_hash(b"another") is None


async def test_a_known_id_is_refused(store: Store, call: Calls) -> None:
    """An id that has started or ended is refused, and its record stays; another session may use it."""
    store.sessions.open(call.session)
    assert await store.journal.start(call.starts("a"))
    assert not await store.journal.start(call.starts("a"))
    await store.journal.end(call.ends("a", b"[1]"))
    assert not await store.journal.start(call.starts("a"))
    await store.journal.end(call.ends("a", b"[2]"))
    assert await stored(store) == {"a": ("done", b"[1]")}
    assert await store.journal.start(call.starts("a", session_id="s-2"))


async def test_one_of_equal_ids_of_a_group_starts(store: Store, call: Calls) -> None:
    """Of starts with one id that are committed together, one may start."""
    store.sessions.open(call.session)
    starting = [store.journal.start(call.starts(key)) for key in ("a", "b", "a", "a")]
    assert await asyncio.gather(*starting) == [True, True, False, False]


async def test_a_call_that_ends_before_its_tool_starts_keeps_its_id(store: Store, call: Calls) -> None:
    """Its end is written with or without its start; an earlier call with the id stays as it is."""
    store.sessions.open(call.session)
    assert await store.journal.end_unstarted(call.ends_unstarted("a"))
    assert not await store.journal.start(call.starts("a"))
    assert not await store.journal.end_unstarted(call.ends_unstarted("a", b"other"))
    assert await store.journal.start(call.starts("b"))
    assert await store.journal.end_unstarted(call.ends_unstarted("b"))
    session = await store.sessions.find_by_key_hash(KEY_HASH)
    assert session is not None
    assert [(read.request_key, read.started, read.echo_id, read.result) for read in session.calls] == [
        ("a", False, True, b'{"error": {}}'),
        ("b", False, True, b'{"error": {}}'),
    ]


async def test_ids_with_any_characters_differ(store: Store, call: Calls) -> None:
    """Request ids may have NUL and other control characters; different ones are different calls."""
    store.sessions.open(call.session)
    keys = ["a", "a\0", "a\x01", "a\x01\x02", "a\x01\x01", "a\N{REPLACEMENT CHARACTER}", "\N{GRINNING FACE}"]
    assert await asyncio.gather(*(store.journal.start(call.starts(key)) for key in keys)) == [True] * len(keys)
    for key in keys:
        await store.journal.end(call.ends(key, key.encode()))
    assert await stored(store) == {key: ("done", key.encode()) for key in keys}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="a\0\x01\x02E", max_size=8), st.text(alphabet="a\0\x01\x02E", max_size=8))
def test_texts_of_postgres_are_reversible(first: str, second: str) -> None:
    """A stored text has no NUL, and is that of one text only."""
    assert "\0" not in pg_text(first)
    assert text_of(pg_text(first)) == first
    assert (pg_text(first) == pg_text(second)) == (first == second)


async def test_results_of_local_calls_are_stored_with_their_session(store: Store, call: Calls) -> None:
    """A local call's result is replaced by a later one, and its id may be used for another call; without a stored
    session nothing is stored.
    """
    store.sessions.open(call.session)
    await store.journal.persist_local_results([call.local("l"), call.local("m"), call.local("n", session_id="none")])
    await store.journal.persist_local_results([call.local("l", b"2")])
    assert await stored(store) == {"l": ("done", b"2"), "m": ("done", b'{"text": "local"}')}
    assert await store.journal.start(call.starts("l"))
    await store.journal.end(call.ends("l", b"3"))
    assert (await stored(store))["l"] == ("done", b"3")
    await store.journal.persist_local_results([call.local("l", b"4")])
    assert (await stored(store))["l"] == ("done", b"3")


async def test_acknowledged_results_are_deleted(store: Store, call: Calls) -> None:
    """The id of a journalled call stays known; a local call is forgotten."""
    store.sessions.open(call.session)
    await store.journal.start(call.starts("a"))
    await store.journal.end(call.ends("a"))
    await store.journal.persist_local_results([call.local("l")])
    store.sessions.acknowledge("s-1", ["a", "l", "unknown"])
    assert await stored(store) == {"a": ("expired", None)}
    assert not await store.journal.start(call.starts("a"))


async def test_a_closed_session_is_deleted_with_its_calls(store: Store, call: Calls) -> None:
    """A call that still runs is deleted when it ends."""
    store.sessions.open(call.session)
    for key in ("ended", "running"):
        await store.journal.start(call.starts(key))
    await store.journal.end(call.ends("ended"))
    store.sessions.close("s-1")
    assert await store.sessions.find_by_key_hash(KEY_HASH) is None
    assert await store.journal.start(call.starts("ended"))
    assert not await store.journal.start(call.starts("running"))
    await store.journal.end(call.ends("running"))
    assert await store.journal.start(call.starts("running"))


async def test_states_of_calls_are_found_by_their_ids(store: Store, call: Calls) -> None:
    """Running calls count as expired, unknown and local ones are left out."""
    store.sessions.open(call.session)
    for key in ("done", "running", "without"):
        await store.journal.start(call.starts(key))
    await store.journal.end(call.ends("done"))
    await store.journal.end(call.ends("without", None))
    await store.journal.persist_local_results([call.local("local")])
    keys = ["done", "running", "without", "local", "unknown"]
    assert await store.sessions.call_states("s-1", keys) == {"done": "done", "running": "expired", "without": "expired"}
    ended = await store.sessions.ended_call("s-1", "done")
    assert ended is not None
    assert ended.result == b'{"text": "done"}'
    assert await store.sessions.ended_call("s-1", "running") is None


@pytest.mark.parametrize("kept", [1, 3])
async def test_the_oldest_results_of_a_principal_are_deleted(open_again: OpenStore, kept: int) -> None:
    """Those beyond the limit of bytes, at the commit of a later end; other principals keep theirs."""
    store = open_again(retention=Retention(results_bytes=kept * 100))
    ann, bob = Calls(), Calls("s-2", "bob")
    store.sessions.open(ann.session)
    store.sessions.open(bob.session)
    await store.journal.start(bob.starts("x"))
    await store.journal.end(bob.ends("x", bytes(100)))
    for key in "abcde":
        await store.journal.start(ann.starts(key))
        await store.journal.end(ann.ends(key, bytes(100)))
    left = [key for key, (state, _) in (await stored(store)).items() if state == "done"]
    assert left == list("abcde")[-kept:]
    assert await stored(store, b"s-2") == {"x": ("done", bytes(100))}
    await store.journal.start(ann.starts("large"))
    await store.journal.end(ann.ends("large", bytes(kept * 100 + 1)))
    assert (await stored(store))["large"] == ("expired", None)
    await store.close()


async def test_results_expire(open_again: OpenStore, call: Calls) -> None:
    """A result that is older than its retention is not returned."""
    store = open_again(retention=Retention(result_ttl_s=50.0))
    store.sessions.open(call.session)
    for key, age_s in (("old", 60.0), ("new", 40.0)):
        await store.journal.start(call.starts(key))
        await store.journal.end(call.ends(key, at=time.time() - age_s))
    assert await stored(store) == {"old": ("expired", None), "new": ("done", b'{"text": "done"}')}
    await store.close()


async def test_a_call_that_ran_when_its_process_ended_is_interrupted(open_again: OpenStore, call: Calls) -> None:
    """The next process finds it, and the audit has it once, with an unknown outcome."""
    store = open_again()
    store.sessions.open(call.session)
    await store.journal.start(call.starts("a"))
    await store.journal.start(call.starts("b"))
    await store.journal.end(call.ends("b"))
    await store.close()
    store = open_again()
    assert await stored(store) == {"a": ("interrupted", None), "b": ("done", b'{"text": "done"}')}
    assert not await store.journal.start(call.starts("a"))
    await store.close()
