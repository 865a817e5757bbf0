"""The sums of a principal's results, which triggers update, are those of the rows."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.contract.stored_calls import Calls
from tests.store.postgres_databases import PostgresDatabase
from toold.store import Store

KEYS = st.sampled_from("abc")
STEPS = st.one_of(
    st.tuples(st.sampled_from(["start", "end", "unstarted", "local", "acknowledge", "child", "child end"]), KEYS),
    st.tuples(st.sampled_from(["close", "finish", "resume"]), st.just("")),
)
SUMS = """
SELECT coalesce(sum(bytes), 0), coalesce(sum(unfinished_bytes), 0) FROM kept;
SELECT coalesce(sum(result_bytes) FILTER (WHERE NOT unfinished), 0),
       coalesce(sum(result_bytes) FILTER (WHERE unfinished), 0) FROM journal;
"""


# Each commit of a node changes its row first: between two commits, no order of locks can be wrong.
EMPTY = "BEGIN; LOCK TABLE node IN EXCLUSIVE MODE; TRUNCATE journal, session, run, kept, call CASCADE; COMMIT;"


async def take(store: Store, call: Calls, step: str, key: str, size: int) -> None:
    journal, sessions = store.journal, store.sessions
    waits: dict[str, Callable[[], Awaitable[object]]] = {
        "start": lambda: journal.start(call.starts(key)),
        "end": lambda: journal.end(call.ends(key, bytes(size))),
        "unstarted": lambda: journal.end_unstarted(call.ends_unstarted(key, bytes(size))),
        "local": lambda: journal.persist_local_results([call.local(key, bytes(size)), call.local("l", bytes(size))]),
        "child": lambda: journal.start(call.child("e0-run", key)),
        "child end": lambda: journal.end(call.child_ends("e0-run", key, bytes(size))),
        "finish": lambda: journal.end(call.ends("run", None, run="e0-run")),
        "resume": lambda: journal.resume_run("e0-again", "e0-run"),
    }
    if step in waits:
        await waits[step]()
    elif step == "acknowledge":
        sessions.acknowledge("s-1", [key])
    else:
        sessions.close("s-1")
        sessions.open(call.session)


@pytest.fixture
def nodes(postgres_database: PostgresDatabase) -> Iterator[tuple[asyncio.Runner, Store, Store]]:
    """Two nodes, and the loop on which they are used."""
    with asyncio.Runner() as runner:

        async def opened() -> tuple[Store, Store]:
            return postgres_database.node("n1"), postgres_database.node("n2")

        first, second = runner.run(opened())
        yield runner, first, second
        for node in (first, second):
            runner.run(node.close())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=10)
@given(steps=st.lists(st.tuples(STEPS, st.integers(0, 3)), max_size=15))
def test_the_sums_are_those_of_the_rows(
    postgres_database: PostgresDatabase,
    nodes: tuple[asyncio.Runner, Store, Store],
    steps: list[tuple[tuple[str, str], int]],
) -> None:
    """After any steps of calls, also in one group, and of several nodes."""
    runner, *stores = nodes
    postgres_database.sql(EMPTY)

    async def run() -> None:
        call = Calls()
        stores[0].sessions.open(call.session)
        for number, ((step, key), size) in enumerate(steps):
            await take(stores[number % 2], call, step, key, size)
        await asyncio.gather(*(take(stores[0], call, step, key, 7) for (step, key), _ in steps))
        for store in stores:
            await store.flush()

    runner.run(run())
    kept, rows = postgres_database.sql(SUMS).splitlines()
    assert kept == rows
