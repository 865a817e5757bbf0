"""After a process is killed during its calls, every acknowledged write is stored exactly once."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from toold.store import Store
from toold.store.sqlite.store_schema import open_for_reading

Call = Any  # conftest.Journalled

pytestmark = pytest.mark.process

VICTIM = """
import asyncio, itertools, pathlib, sys, time
from toold.store import CallRow, CallEnd, Retention, SessionRow, CallStart, Store, open_sqlite_store

CALLERS = 16

def row(key, outcome):
    return CallRow(id=f"call-{key}", started_at=time.time(), transport="websocket", principal="local",
                   session_id="s-1", session_label="l", client="", request_id=key, tool="chat", outcome=outcome,
                   arguments=None, latency_ms=1.0)

async def caller(store, round, name):
    for number in itertools.count():
        key = f"{round}-{name}-{number}"
        started = CallStart(session_id="s-1", request_key=key, echo_id=False, arguments_hash=b"h",
                          row=row(key, "OUTCOME_UNKNOWN"))
        if not await store.journal.start(started):
            raise SystemExit(f"{key} may not start")
        print("started", key, flush=True)
        await store.journal.end(CallEnd(session_id="s-1", request_key=key, result=key.encode(), at=time.time(),
                              row=row(key, "ok")))
        print("ended", key, flush=True)

async def main():
    store = open_sqlite_store(pathlib.Path(sys.argv[1]), content=str, retention=Retention(), key=b"k" * 32)
    store.sessions.open(SessionRow(id="s-1", key_hash=b"key", principal="local", label="l", toolset="standard",
                                  opened_at=time.time()))
    await asyncio.gather(*(caller(store, sys.argv[2], name) for name in range(CALLERS)))

asyncio.run(main())
"""


CALLS = "SELECT request_key, state, result FROM journal LEFT JOIN result USING (number)"


def killed(database: Path, round_: int, after: int) -> list[tuple[str, str]]:
    """The acknowledgements that a process printed until it was killed, which is after ``after`` lines."""
    command = [sys.executable, "-c", VICTIM, str(database), str(round_)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        reported = [process.stdout.readline() for _ in range(after)]
        process.kill()
        reported += process.stdout.readlines()
    words = [line.split() for line in reported if line.startswith(("started ", "ended ")) and line.endswith("\n")]
    return [(word, key) for word, key in words]


def read(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(open_for_reading(database)) as connection:
        return connection.execute(query).fetchall()


async def test_acknowledged_writes_survive_kill_9(open_store: Callable[..., Store], database: Path) -> None:
    """After three kills, each started call is stored, and each ended call has its result and one row."""
    reported = [words for round_ in range(3) for words in killed(database, round_, after=100 + 77 * round_)]
    started = {key for word, key in reported if word == "started"}
    ended = {key for word, key in reported if word == "ended"}
    assert len(ended) > 100

    store = open_store()
    assert await store.sessions.find_by_key_hash(b"key")
    await store.close()
    calls = {key: (state, result) for key, state, result in read(database, CALLS)}
    assert started <= set(calls)
    assert {state for state, _ in calls.values()} == {"done", "interrupted"}
    assert {key: calls[key] for key in ended} == {key: ("done", key.encode()) for key in ended}

    rows = read(database, "SELECT id, outcome FROM call")
    outcomes = {"done": "ok", "interrupted": "OUTCOME_UNKNOWN"}
    assert sorted(rows) == sorted((f"call-{key}", outcomes[state]) for key, (state, _) in calls.items())
    assert read(database, "SELECT sum(calls) FROM call_total") == [(len(rows),)]


async def test_copied_files_have_the_acknowledged_writes(
    open_store: Callable[..., Store], call: Call, database: Path, tmp_path: Path
) -> None:
    """A copy of the files contains every acknowledged write: none waits in memory for a later commit."""
    store = open_store()
    store.sessions.open(call.session)
    assert await store.journal.start(call.starts("1"))
    assert await store.journal.start(call.starts("2"))
    await store.journal.end(call.ends("1", b"[1]"))
    directory = tmp_path / "after the crash"
    directory.mkdir()
    for file in database.parent.glob("toold.db*"):
        (directory / file.name).write_bytes(file.read_bytes())
    await store.close()
    copy = directory / database.name
    assert read(copy, "SELECT request_key, state, result FROM journal LEFT JOIN result USING (number)") == [
        ("1", "done", b"[1]"),
        ("2", "started", None),
    ]
    assert read(copy, "SELECT id FROM call") == [("call-1",)]


FULL_DISK = """
import asyncio, pathlib, resource, signal, sys, time
from toold.store import CallRow, CallEnd, Retention, SessionRow, CallStart, Store, open_sqlite_store, StoreError

def row(key, **fields):
    return CallRow(id=key, started_at=time.time(), transport="websocket", principal="local", session_id="s-1",
                   session_label="l", client="", request_id=key, tool="chat", latency_ms=1.0, **fields)

def starts(key):
    return CallStart(session_id="s-1", request_key=key, echo_id=False, arguments_hash=b"h",
                   row=row(key, outcome="OUTCOME_UNKNOWN"))

def ends(key, size):
    return CallEnd(session_id="s-1", request_key=key, result=b"x" * size, at=time.time(), row=row(key, outcome="ok"))

async def refused(waiting):
    try:
        await waiting
    except StoreError as error:
        return bool(error.reason) and "toold.db" not in str(error)
    return False

async def main():
    store = open_sqlite_store(pathlib.Path(sys.argv[1]), content=str, retention=Retention(), key=b"k" * 32)
    store.sessions.open(SessionRow(id="s-1", key_hash=b"key", principal="local", label="l", toolset="standard",
                                  opened_at=time.time()))
    assert await store.journal.start(starts("runs")) and await store.journal.start(starts("small"))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
    print("end refused", await refused(store.journal.end(ends("runs", 500_000))))
    print("start refused", await refused(store.journal.start(starts("new"))))
    print("next end refused", await refused(store.journal.end(ends("small", 1))))
    print("problem", bool(store.problem))
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    while store.problem:
        await asyncio.sleep(0.01)
    print("start", await store.journal.start(starts("new")))
    await store.close()

asyncio.run(main())
"""


async def test_full_disk_fails_starts_and_retries_ends(open_store: Callable[..., Store], database: Path) -> None:
    """A full disk refuses starts; the ends of calls are written when the disk has space again."""
    # The limit on file sizes applies to a whole process, so this runs in a separate one.
    command = [sys.executable, "-c", FULL_DISK, str(database)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reported = [line for line in done.stdout.splitlines() if "database" not in line]
    assert reported == [
        "end refused True",
        "start refused True",
        "next end refused True",
        "problem True",
        "start True",
    ], done.stdout + done.stderr
    assert read(database, "SELECT request_key, state, result_bytes FROM journal ORDER BY 1") == [
        ("new", "started", 0),
        ("runs", "done", 500_000),
        ("small", "done", 1),
    ]
    assert sorted(read(database, "SELECT id FROM call")) == [("runs",), ("small",)]
