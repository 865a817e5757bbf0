"""Retained results in PostgreSQL: found by each node, bound to their principal, limited in size and age."""

from collections.abc import Callable, Iterator

import pytest
from tests.store.postgres_databases import PostgresDatabase
from toold.store import ResultDeletedError, ResultSizeError, ResultUnknownError, StoreError
from toold.store.postgres.postgres_results import CHUNK_BYTES, PostgresResults, open_postgres_results

OpenResults = Callable[..., PostgresResults]

pytestmark = pytest.mark.process


@pytest.fixture
def open_again(postgres_database: PostgresDatabase) -> Iterator[OpenResults]:
    """Opens the results of the test's database, as each node does."""
    opened = []

    def make(ttl_s: float = 3600.0, max_bytes: int = 10_000_000) -> PostgresResults:
        address = postgres_database.address
        opened.append(
            open_postgres_results(address, node_name="n", lost_after_s=60.0, ttl_s=ttl_s, max_bytes=max_bytes)
        )
        return opened[-1]

    yield make
    for results in opened:
        results.close()


def test_another_node_reads_a_result(open_again: OpenResults) -> None:
    """A result is read as a whole and in pieces, also across chunks, by another node than the one that wrote it."""
    content = bytes(range(256)) * 10_000
    assert open_again().write("local", "e1-2", "json", [content[:5], content[5:]], 0.0) == len(content)
    results = open_again()
    assert results.read("local", "e1-2", 0.0) == ("json", content)
    for offset, size in ((0, 10), (CHUNK_BYTES - 5, 10), (CHUNK_BYTES, 3), (len(content) - 4, 100), (len(content), 5)):
        assert results.read_piece("local", "e1-2", offset, size, 0.0) == content[offset : offset + size]
    found = results.find("local", "e1-2", 0.0)
    assert (found.extension, found.size) == ("json", len(content))
    assert [name for name, _ in results.newest("local", 5, 0.0)] == ["e1-2"]


@pytest.mark.parametrize("other", ["Local", "", "x" * 300, "\ud800", "a\0b"])
def test_a_result_is_bound_to_its_principal_and_handle(open_again: OpenResults, other: str) -> None:
    """No name gives access to the result of another one, whatever its characters are."""
    results = open_again()
    results.write("local", "e1-2", "json", [b"1"], 0.0)
    for principal, handle in ((other, "e1-2"), ("local", other)):
        with pytest.raises(ResultUnknownError):
            results.read(principal, handle, 0.0)
        results.write(principal, handle, "json", [b"2"], 0.0)
    assert results.read("local", "e1-2", 0.0) == ("json", b"1")
    assert [name for name, _ in results.newest("local", 5, 0.0)] == ["e1-2"]


def test_a_result_is_replaced(open_again: OpenResults) -> None:
    """A handle has one result, which a later write replaces."""
    results = open_again()
    results.write("local", "a", "json", [b"x" * (CHUNK_BYTES + 1)], 0.0)
    results.write("local", "a", "csv", [b"x\n"], 0.0)
    assert results.read("local", "a", 0.0) == ("csv", b"x\n")


def test_an_expired_result_is_known_as_deleted(open_again: OpenResults, postgres_database: PostgresDatabase) -> None:
    """An expired result is refused at once, deleted at the next cleanup, and forgotten a week later."""
    results = open_again(ttl_s=60.0)
    results.write("local", "a", "json", [b"1"], 0.0)
    postgres_database.sql("UPDATE retained_result SET at = at - 61")
    with pytest.raises(ResultDeletedError):
        results.read("local", "a", 0.0)
    assert postgres_database.sql("SELECT count(*) FROM result_chunk") == "1"
    results.delete_expired(0.0)
    assert postgres_database.sql("SELECT count(*) FROM result_chunk") == "0"
    with pytest.raises(ResultDeletedError):
        open_again(ttl_s=1e9).read("local", "a", 0.0)
    postgres_database.sql("UPDATE retained_result SET deleted_at = deleted_at - 8 * 86400")
    results.delete_expired(0.0)
    with pytest.raises(ResultUnknownError):
        results.find("local", "a", 0.0)


def test_principals_do_not_displace_each_others_results(open_again: OpenResults) -> None:
    """Beyond the limit of all nodes, the principal with the most bytes loses its oldest results."""
    first, second = open_again(max_bytes=10), open_again(max_bytes=10)
    first.write("ann", "old", "json", [b"xx"], 0.0)
    for number in range(1, 6):
        (first, second)[number % 2].write("local", str(number), "json", [b"xxxx"], 0.0)
    assert first.read("ann", "old", 0.0) == ("json", b"xx")
    assert [name for name, _ in first.newest("local", 9, 0.0)] == ["5", "4"]


def test_a_too_large_result_changes_nothing(open_again: OpenResults) -> None:
    """A result over the limit is refused while it is written; one that cannot be made leaves nothing."""
    results = open_again(max_bytes=10)
    results.write("local", "a", "json", [b"xxxx"], 0.0)
    with pytest.raises(ResultSizeError):
        results.write("local", "a", "json", [b"yyyy"] * 100, 0.0)
    assert results.read("local", "a", 0.0) == ("json", b"xxxx")

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        results.write("local", "b", "json", pieces(), 0.0)
    with pytest.raises(ResultUnknownError):
        results.read("local", "b", 0.0)


def test_a_lost_connection_is_opened_again(open_again: OpenResults, postgres_database: PostgresDatabase) -> None:
    """The operation that finds the connection lost fails; the next one has a new connection."""
    results = open_again()
    results.write("local", "a", "json", [b"1"], 0.0)
    postgres_database.sql(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'toold n results'"
    )
    with pytest.raises(StoreError):
        results.read("local", "a", 0.0)
    assert results.read("local", "a", 0.0) == ("json", b"1")
