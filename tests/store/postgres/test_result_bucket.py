"""Retained results in a bucket: what is where, and what becomes of objects that no result has.

The bucket is a directory.
"""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.store.postgres_databases import PostgresDatabase
from toold.daemon.persistence import result_files
from toold.store import ResultSizeError, StoreError
from toold.store.postgres.postgres_results import CHUNK_BYTES, PostgresResults, open_postgres_results
from toold.store.postgres.result_bucket import ResultBucket

OpenResults = Callable[..., PostgresResults]
LARGE = bytes(range(256)) * 10_000

pytestmark = pytest.mark.process


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    (tmp_path / "bucket").mkdir()
    return tmp_path / "bucket"


@pytest.fixture
def open_again(postgres_database: PostgresDatabase, bucket: Path) -> Iterator[OpenResults]:
    """Opens the results of the test's database, by default with its bucket."""
    opened = []

    def make(max_bytes: int = 10_000_000, url: str | None = f"file://{bucket}") -> PostgresResults:
        opened.append(
            open_postgres_results(
                postgres_database.address,
                node_name="n",
                lost_after_s=60.0,
                ttl_s=3600.0,
                max_bytes=max_bytes,
                bucket=None if url is None else ResultBucket(url),
            )
        )
        return opened[-1]

    yield make
    for results in opened:
        results.close()


def objects(bucket: Path) -> list[Path]:
    return [path for path in bucket.iterdir() if path.is_file()]


def make_due(postgres_database: PostgresDatabase) -> None:
    """Lets the time pass after which listed objects are deleted."""
    postgres_database.sql("UPDATE toold.result_object SET due_at = 0")


def test_a_large_result_is_an_object(open_again: OpenResults, bucket: Path) -> None:
    """Another node reads it as a whole and in pieces; the database has none of its bytes."""
    assert open_again().write("local", "e1-2", "json", [LARGE[:5], LARGE[5:]], 0.0) == len(LARGE)
    assert [path.stat().st_size for path in objects(bucket)] == [len(LARGE)]
    results = open_again()
    assert results.read("local", "e1-2", 0.0) == ("json", LARGE)
    for offset, size in ((0, 10), (CHUNK_BYTES - 5, 10), (len(LARGE) - 4, 100), (len(LARGE), 5), (len(LARGE) + 9, 5)):
        assert results.read_piece("local", "e1-2", offset, size, 0.0) == LARGE[offset : offset + size]
    assert results.find("local", "e1-2", 0.0).size == len(LARGE)


@pytest.mark.parametrize("size", [0, 1, CHUNK_BYTES])
def test_a_small_result_stays_in_the_database(open_again: OpenResults, bucket: Path, size: int) -> None:
    """Up to one chunk, which is one statement."""
    results = open_again()
    results.write("local", "e1-2", "txt", [b"x" * size], 0.0)
    assert objects(bucket) == []
    assert results.read("local", "e1-2", 0.0) == ("txt", b"x" * size)


def test_the_object_of_a_replaced_result_is_deleted(
    open_again: OpenResults, bucket: Path, postgres_database: PostgresDatabase
) -> None:
    """Not at once, because another node may read it."""
    results = open_again()
    results.write("local", "e1-2", "json", [LARGE], 0.0)
    results.write("local", "e1-2", "json", [b"small"], 0.0)
    results.delete_expired(0.0)
    assert len(objects(bucket)) == 1
    make_due(postgres_database)
    results.delete_expired(0.0)
    assert objects(bucket) == []
    assert results.read("local", "e1-2", 0.0) == ("json", b"small")


def test_the_oldest_objects_make_space(
    open_again: OpenResults, bucket: Path, postgres_database: PostgresDatabase
) -> None:
    """The limit of all results counts those in the bucket."""
    results = open_again(max_bytes=2 * len(LARGE))
    for number in range(3):
        results.write("local", f"e1-{number}", "json", [LARGE], 0.0)
    make_due(postgres_database)
    results.delete_expired(0.0)
    assert len(objects(bucket)) == 2
    assert [name for name, _ in results.newest("local", 5, 0.0)] == ["e1-2", "e1-1"]


def test_an_upload_that_fails_leaves_nothing(
    open_again: OpenResults, bucket: Path, postgres_database: PostgresDatabase
) -> None:
    """Neither a result that is too large nor one whose source ends with an error has a row; its object is deleted."""
    results = open_again(max_bytes=len(LARGE) - 1)

    def broken() -> Iterator[bytes]:
        yield LARGE[: 2 * CHUNK_BYTES]
        raise OSError("the disk failed")

    with pytest.raises(ResultSizeError):
        results.write("local", "e1-2", "json", [LARGE], 0.0)
    with pytest.raises(OSError, match="the disk failed"):
        results.write("local", "e1-2", "json", broken(), 0.0)
    assert results.newest("local", 5, 0.0) == []
    make_due(postgres_database)
    results.delete_expired(0.0)
    assert objects(bucket) == []


def test_an_upload_that_was_given_up_is_not_recorded(
    open_again: OpenResults, postgres_database: PostgresDatabase
) -> None:
    """If another node has deleted the object meanwhile, the write fails, so no result leads to nothing."""
    results = open_again()

    def slow() -> Iterator[bytes]:
        yield LARGE
        postgres_database.sql("DELETE FROM toold.result_object")

    with pytest.raises(StoreError, match="the upload took too long"):
        results.write("local", "e1-2", "json", slow(), 0.0)
    assert results.newest("local", 5, 0.0) == []


def test_a_node_without_the_bucket_says_so(open_again: OpenResults) -> None:
    """The error names the setting."""
    open_again().write("local", "e1-2", "json", [LARGE], 0.0)
    with pytest.raises(StoreError, match="results_bucket is not set"):
        open_again(url=None).read("local", "e1-2", 0.0)


def test_a_bucket_that_has_gone_is_an_error(open_again: OpenResults, bucket: Path) -> None:
    """Reading fails with one line, which does not name the object's path twice; writing again works."""
    results = open_again()
    results.write("local", "e1-2", "json", [LARGE], 0.0)
    for path in objects(bucket):
        path.unlink()
    with pytest.raises(StoreError, match="the bucket of results cannot be used") as raised:
        results.read("local", "e1-2", 0.0)
    assert "\n" not in str(raised.value)
    results.write("local", "e1-2", "json", [LARGE], 0.0)
    assert results.read("local", "e1-2", 0.0) == ("json", LARGE)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"AWS_ENDPOINT_URL": "s3.example"}, "AWS_ENDPOINT_URL must be a URL such as https://s3.example.com"),
        ({"AWS_ENDPOINT": "https://"}, "AWS_ENDPOINT must be a URL"),
        ({"AWS_ENDPOINT_URL": "https://a:b"}, "AWS_ENDPOINT_URL must be a URL"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, "set AWS_ALLOW_HTTP=true"),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_refused(env: dict[str, str], said: str) -> None:
    """Before the library, which crashes on some, gets it; the S3 server of `make test-peers` shows the other errors."""
    with pytest.raises(StoreError, match=said):
        ResultBucket("s3://results/toold", env)


async def test_a_bucket_is_checked_until_it_can_be_used(
    postgres_database: PostgresDatabase, bucket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its problem is known meanwhile; afterwards it is not checked again."""
    monkeypatch.setattr(result_files, "DELETE_INTERVAL_S", 0.001)
    attempts = 0

    def check() -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise StoreError("the bucket of results cannot be used (away)", "away")
        ResultBucket(f"file://{bucket}").check()

    shared = open_postgres_results(
        postgres_database.address, node_name="n", lost_after_s=60.0, ttl_s=3600.0, max_bytes=1000
    )
    cycles, delete = 0, shared.delete_expired

    def count(now: float) -> None:
        nonlocal cycles
        cycles += 1
        delete(now)

    monkeypatch.setattr(shared, "delete_expired", count)
    results = result_files.ResultFiles(shared, check_bucket=check)
    problems = set[str | None]()
    running = asyncio.create_task(results.run())
    while cycles < 5:
        await asyncio.sleep(0.001)
        problems.add(results.problem)
    running.cancel()
    results.close()
    assert problems >= {"away", None}
    assert attempts == 3
    assert objects(bucket) == []
