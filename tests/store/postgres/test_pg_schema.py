"""The schema of PostgreSQL databases, and what a start says about a database that it cannot use."""

import concurrent.futures
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.postgres_cluster import Cluster
from tests.store.contract.stored_calls import KEY_HASH, Calls
from tests.store.postgres.conftest import OpenNode
from tests.store.postgres_databases import KEY, PostgresDatabase, new_database
from toold.store import StoreError
from toold.store.postgres.pg_node_start import NodeNameTakenError
from toold.store.postgres.pg_schema import (
    POSTGRES_SCHEMA,
    POSTGRES_STEPS,
    NewerPostgresSchemaError,
    NodesTooOldError,
    PostgresStep,
    UnmigratedError,
    migrate_postgres,
)


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[PostgresDatabase]:
    """A database without tables."""
    with new_database(cluster, "template1") as database:
        yield database


@contextmanager
def user(database: PostgresDatabase, name: str) -> Iterator[str]:
    """A user without rights; yields the address as which it connects."""
    database.cluster.sql(f"CREATE ROLE {name} LOGIN PASSWORD 'hidden'")
    yield database.address.replace("postgres://postgres@", f"postgres://{name}:hidden@")
    database.sql(f"DROP OWNED BY {name}")
    database.cluster.sql(f"DROP ROLE {name}")


def refusal(database: PostgresDatabase, **options: object) -> str:
    """The message with which the start of a node is refused."""
    with pytest.raises(StoreError) as refused:
        database.node(**options)  # type: ignore[arg-type] # the options of the store
    return str(refused.value)


def test_a_database_is_migrated_once(empty: PostgresDatabase) -> None:
    """By one of two migrations that run at the same time; a start never does it."""
    assert "has no tables yet: run `toold store migrate`" in refusal(empty)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        done = sorted(threads.map(migrate_postgres, [empty.address] * 2))
    assert done == [(0, POSTGRES_SCHEMA), (POSTGRES_SCHEMA, POSTGRES_SCHEMA)]


async def test_nodes_of_adjacent_schemas_run_side_by_side(
    postgres_database: PostgresDatabase, open_node: OpenNode
) -> None:
    """A node works on a newer schema that states so. Another one is not made while such nodes run; after it they do not
    start.
    """
    compatible = PostgresStep("CREATE TABLE added (one integer)", readable_from=POSTGRES_SCHEMA)
    running = open_node("old")
    assert migrate_postgres(postgres_database.address, [*POSTGRES_STEPS, compatible]) == (
        POSTGRES_SCHEMA,
        POSTGRES_SCHEMA + 1,
    )
    await running.sync()
    another = open_node("another old", "another old")
    incompatible = PostgresStep("DROP TABLE added", readable_from=POSTGRES_SCHEMA + 2)
    steps = [*POSTGRES_STEPS, compatible, incompatible]
    with pytest.raises(NodesTooOldError, match=f"cannot use schema {POSTGRES_SCHEMA + 2}: another old, node old; stop"):
        migrate_postgres(postgres_database.address, steps)
    postgres_database.sql("UPDATE node SET schema = schema + 2 WHERE name = 'another old'")
    await running.close()
    migrate_postgres(postgres_database.address, steps)
    await another.sync()
    assert "install the newer toold" in refusal(postgres_database)
    with pytest.raises(NewerPostgresSchemaError):
        migrate_postgres(postgres_database.address)


def test_nodes_before_schema_3_count_as_those_of_the_schema_before(empty: PostgresDatabase) -> None:
    """Their rows do not have the schema that they know: those of schema 2 may run meanwhile, those of schema 1 not."""
    live = "INSERT INTO node (epoch, name, state, until, lease_s) VALUES ('e', 'old', 'live', 'infinity', 9)"
    migrate_postgres(empty.address, POSTGRES_STEPS[:1])
    empty.sql(live)
    with pytest.raises(NodesTooOldError, match="cannot use schema 3: old; stop them, or upgrade them first"):
        migrate_postgres(empty.address, POSTGRES_STEPS[:3])
    assert migrate_postgres(empty.address, POSTGRES_STEPS[:2]) == (1, 2)
    assert migrate_postgres(empty.address, POSTGRES_STEPS[:3]) == (2, 3)
    too_new = PostgresStep("CREATE TABLE added (one integer)", readable_from=3)
    with pytest.raises(NodesTooOldError, match="cannot use schema 4: old"):
        migrate_postgres(empty.address, [*POSTGRES_STEPS[:3], too_new])


def test_an_older_schema_is_not_used(empty: PostgresDatabase) -> None:
    """The message says what to do."""
    migrate_postgres(empty.address)
    steps = [*POSTGRES_STEPS, PostgresStep("CREATE TABLE added (one integer)", POSTGRES_SCHEMA)]
    empty.sql("UPDATE store SET version = version - 1")
    with pytest.raises(UnmigratedError, match="run `toold store migrate`"):
        empty.node()
    empty.sql("UPDATE store SET version = version + 1")
    assert migrate_postgres(empty.address, steps) == (POSTGRES_SCHEMA, POSTGRES_SCHEMA + 1)


def test_a_failed_migration_changes_nothing(postgres_database: PostgresDatabase) -> None:
    """All its steps are one transaction."""
    steps = [
        *POSTGRES_STEPS,
        PostgresStep("CREATE TABLE added (one integer)", POSTGRES_SCHEMA),
        PostgresStep("CREATE TABLE session (one integer)", POSTGRES_SCHEMA),
    ]
    with pytest.raises(StoreError, match=r"nothing was changed.*session"):
        migrate_postgres(postgres_database.address, steps)
    assert postgres_database.sql("SELECT version, to_regclass('added') FROM store") == f"{POSTGRES_SCHEMA}|"


async def test_databases_of_others_are_refused(
    empty: PostgresDatabase, postgres_database: PostgresDatabase, open_node: OpenNode
) -> None:
    """One whose schema ``toold`` another program made, and one of a service with another audit key."""
    empty.cluster.sql("CREATE SCHEMA toold; CREATE TABLE toold.session (id text)", database=empty.name)
    assert "belongs to another program" in refusal(empty)
    with pytest.raises(StoreError, match="belongs to another program"):
        migrate_postgres(empty.address)
    empty.cluster.sql("CREATE TABLE toold.store (service text)", database=empty.name)
    assert "belongs to another program" in refusal(empty)
    first = open_node("e1")
    assert "belongs to another service: its nodes sign the audit with another audit.key" in refusal(
        postgres_database, epoch="e2", key=bytes(len(KEY))
    )
    assert first.problem is None


def test_other_tables_of_a_database_are_not_touched(empty: PostgresDatabase) -> None:
    """toold's tables are in a separate schema."""
    empty.cluster.sql("CREATE TABLE public.session (id text); CREATE TABLE public.call (id text)", database=empty.name)
    migrate_postgres(empty.address)
    tables = empty.sql("SELECT DISTINCT table_schema FROM information_schema.tables WHERE table_name = 'session'")
    assert sorted(tables.split()) == ["public", "toold"]


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("postgresql://ann:hidden@127.0.0.1:1/db", "cannot connect to PostgreSQL at 127.0.0.1:1/db .*refused"),
        ("postgresql://ann:hidden@host.invalid/db", "cannot connect to PostgreSQL at host.invalid:5432/db"),
        ("postgresql://ann:hidden@host:port/db", "cannot connect to PostgreSQL at host:port/db"),
        ("postgresql://ann:hidden@host/db?wrong=1", "the address of the database is not valid"),
    ],
)
def test_a_wrong_address_is_named_without_its_password(
    postgres_database: PostgresDatabase, address: str, message: str
) -> None:
    """The message says what was tried, and what to check."""
    postgres_database.address = address
    with pytest.raises(StoreError, match=message) as refused:
        postgres_database.node()
    assert "hidden" not in str(refused.value) + refused.value.reason


def test_a_missing_database_or_user_is_named(postgres_database: PostgresDatabase) -> None:
    """As the server says."""
    right = postgres_database.address
    postgres_database.address = right.replace(postgres_database.name, "missing")
    assert 'database "missing" does not exist' in refusal(postgres_database)
    postgres_database.address = right.replace("postgres@", "nobody_here@")
    assert 'role "nobody_here" does not exist' in refusal(postgres_database)


def test_missing_rights_are_named(postgres_database: PostgresDatabase, empty: PostgresDatabase) -> None:
    """Of a node, and of a migration."""
    with user(postgres_database, "reader") as address:
        postgres_database.address = address
        assert "the user has no rights on the tables" in refusal(postgres_database)
    with (
        user(empty, "stranger") as address,
        pytest.raises(StoreError, match=r"may not create the tables"),
    ):
        migrate_postgres(address)


def test_another_encoding_is_refused(empty: PostgresDatabase) -> None:
    """A database that cannot store each text."""
    empty.cluster.sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    empty.address = empty.address.replace(empty.name, "latin")
    assert "has the encoding LATIN1, but needs UTF8" in refusal(empty)
    empty.cluster.sql("DROP DATABASE latin")


async def test_two_nodes_do_not_have_one_name(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """While one runs, the other does not start; the one that runs is not disturbed."""
    running = open_node("e1", "twin", lease_s=2.0)
    with pytest.raises(NodeNameTakenError, match="a node with the name 'twin' is running"):
        postgres_database.node("e2", "twin", lease_s=2.0)
    await running.sync()
    await running.close()
    await open_node("e3", "twin").sync()


async def test_a_node_takes_the_name_of_one_that_has_ended(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """Without a sign of life it is declared dead; at once if nothing listens at its address."""
    asked: list[str] = []

    def listens(address: str) -> bool:
        asked.append(address)
        return False

    postgres_database.sql(
        "INSERT INTO node (epoch, name, address, state, until, lease_s) VALUES "
        "('gone', 'n', 'host:1', 'live', clock_timestamp() + interval '1 hour', 3600), "
        "('silent', 'm', '', 'live', clock_timestamp() + interval '1 hour', 1)"
    )
    await open_node("e1", "n", listens=listens).sync()
    await open_node("e2", "m").sync()
    assert asked == ["host:1"]
    states = "SELECT epoch, state FROM node ORDER BY 1"
    assert postgres_database.sql(states) == "e1|live\ne2|live\ngone|dead\nsilent|dead"


async def test_a_wrong_clock_of_a_node_changes_nothing(
    postgres_database: PostgresDatabase, open_node: OpenNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour off: leases and expiry are by the database's clock."""
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    node, call = open_node("e1"), Calls()
    node.sessions.open(call.session)
    await node.journal.start(call.starts("a"))
    await node.journal.end(call.ends("a"))
    session = await node.sessions.find_by_key_hash(KEY_HASH)
    assert session is not None
    assert abs(session.calls[0].at - time.time()) < 5
    ages = "SELECT abs(ended_at - extract(epoch FROM clock_timestamp())) < 5 FROM journal"
    assert postgres_database.sql(ages) == "t"
    assert postgres_database.sql("SELECT until > clock_timestamp() FROM node") == "t"
