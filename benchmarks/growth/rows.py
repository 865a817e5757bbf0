"""The cost of writing, reading and removing audit rows, by the number of stored rows."""

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Final

from toold.audit import content_reducer
from toold.store import KEY_BYTES, Archive, CallRow, Retention, Store, open_archive, open_sqlite_store

from .curves import Curve

_BATCH: Final = 5000
"""Rows per batch: half of the writer's queue."""
_REMOVED: Final = 2000
_TAIL: Final = 20
_TIMES: Final = 9
_NO_BOUND: Final = 2**50
_PATIENCE_S: Final = 60.0
_CONTENT: Final = content_reducer("shape")


async def rows(numbers: Sequence[int], say: Callable[[str], None]) -> list[Curve]:
    """CPU time of the writer and the readers, which run in this process."""
    writing, removing, tailing, summing = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="toold-bench-") as directory:
        path = Path(directory) / "toold.db"
        store = open_sqlite_store(path, content=_CONTENT, retention=Retention(bytes=_NO_BOUND), key=bytes(KEY_BYTES))
        try:
            there = 0
            for number in numbers:
                say(f"{number:,} audit rows")
                while there < number - _BATCH:
                    there += await _write(store, there, min(_BATCH, number - _BATCH - there))
                used = time.process_time()
                there += await _write(store, there, _BATCH)
                writing.append((number, (time.process_time() - used) / _BATCH * 1e6))
                tailing.append((number, _read(path, lambda archive: archive.recent(_TAIL))))
                summing.append((number, _read(path, lambda archive: archive.totals())))
                used = time.process_time()
                removed = await _remove(store, path)
                removing.append((number, (time.process_time() - used) / removed * 1e6))
                there -= removed
        finally:
            await store.close()
    work = "audit rows"
    return [
        Curve("writing", work, "CPU µs per row", 0, writing),
        Curve("retention", work, "CPU µs per removed row", 0, removing),
        Curve("audit tail", work, f"CPU µs for the last {_TAIL} rows", 0, tailing),
        Curve("audit stats", work, "CPU µs for the sums", 0, summing),
    ]


async def _write(store: Store, first: int, many: int) -> int:
    for number in range(first, first + many):
        store.audit.record(_row(number))
    await store.flush()
    return many


def _read(path: Path, query: Callable[[Archive], object]) -> float:
    """CPU µs of a query as ``toold audit`` runs it, with opening the file."""
    times = []
    for _ in range(_TIMES):
        began = time.process_time()
        with open_archive(path) as archive:
            query(archive)
        times.append((time.process_time() - began) * 1e6)
    return median(times)


async def _remove(store: Store, path: Path) -> int:
    """Let the retention remove some thousand of the oldest rows. Returns their number.

    Raises:
        RuntimeError: it did not remove them in time.
    """
    with closing(sqlite3.connect(path)) as connection:

        def one(query: str) -> int:
            return int(connection.execute(query).fetchone()[0])

        each = one("SELECT bytes / (SELECT count(*) FROM call) FROM calls_size")
        bound = one("SELECT bytes FROM calls_size") - _REMOVED * each
        first, give_up = one("SELECT min(seq) FROM call"), time.perf_counter() + _PATIENCE_S
        store.apply(_CONTENT, Retention(bytes=bound))
        while one("SELECT bytes FROM calls_size") > bound:
            if time.perf_counter() > give_up:
                raise RuntimeError(f"the retention removed too little within {_PATIENCE_S:.0f} s")
            await asyncio.sleep(0.05)
        store.apply(_CONTENT, Retention(bytes=_NO_BOUND))
        return one("SELECT min(seq) FROM call") - first


def _row(number: int) -> CallRow:
    """The row of a call of ``echo``, as the daemon writes it."""
    return CallRow(
        id=f"0123456789ab-{number:x}",
        started_at=time.time(),
        transport="websocket",
        principal="local",
        session_id="0123456789abcdef",
        session_label="benchmark",
        client="bench 1",
        request_id=f'"{number}"',
        tool="echo",
        outcome="ok",
        arguments={"text": "a line of text to be echoed"},
        arguments_bytes=110,
        result_bytes=210,
        latency_ms=0.3,
        tool_ms=0.1,
    )
