"""The SQL of the audit chain's checkpoints and head."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ..audit_chain import GENESIS, ChainHead, ChainTrail, Checkpoint, CheckpointKind

_CHECKPOINT: Final = "number, kind, first_seq, last_seq, calls, since, until, mac_before, mac_after, mac"
_HEAD: Final = "chain, last_seq, last_mac, checkpoints, at, closed, mac"


def head(connection: sqlite3.Connection) -> ChainHead | None:
    """Returns the stored head, unverified."""
    row = connection.execute(f"SELECT {_HEAD} FROM head").fetchone()  # noqa: S608 - our own names
    if row is None:
        return None
    chain, last_seq, last_mac, checkpoints, at, closed, mac = row
    return ChainHead(
        chain=chain, last_seq=last_seq, last_mac=last_mac, checkpoints=checkpoints, at=at, closed=bool(closed), mac=mac
    )


def write_head(connection: sqlite3.Connection, new: ChainHead) -> None:
    """Replaces the head."""
    fields = (new.chain, new.last_seq, new.last_mac, new.checkpoints, new.at, new.closed, new.mac)
    connection.execute(f"INSERT OR REPLACE INTO head (one, {_HEAD}) VALUES (1, ?, ?, ?, ?, ?, ?, ?)", fields)  # noqa: S608 - our own names


def write_checkpoint(connection: sqlite3.Connection, new: Checkpoint) -> None:
    """Inserts a checkpoint, or replaces the checkpoint with its number, and marks it as unsent."""
    fields = (
        new.number, new.kind, new.first_seq, new.last_seq, new.calls, new.since, new.until, new.before, new.after,
        new.mac,
    )  # fmt: skip
    connection.execute(
        f"INSERT OR REPLACE INTO checkpoint ({_CHECKPOINT}, sent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",  # noqa: S608 - our own names
        fields,
    )


def latest(connection: sqlite3.Connection, kind: CheckpointKind) -> Checkpoint | None:
    """Returns the checkpoint of a kind with the highest number."""
    row = connection.execute(
        f"SELECT {_CHECKPOINT} FROM checkpoint WHERE kind = ? ORDER BY number DESC LIMIT 1",  # noqa: S608 - our own names
        (kind,),
    ).fetchone()
    return _checkpoint(row) if row else None


def unsent(connection: sqlite3.Connection, limit: int) -> list[Checkpoint]:
    """Returns the checkpoints whose current version Supabase does not have, by number."""
    rows = connection.execute(
        f"SELECT {_CHECKPOINT} FROM checkpoint WHERE NOT sent ORDER BY number LIMIT ?",  # noqa: S608 - our own names
        (limit,),
    )
    return [_checkpoint(fields) for fields in rows]


def mark_sent(connection: sqlite3.Connection, checkpoints: Iterable[Checkpoint]) -> None:
    """Marks checkpoints as sent, except those that were extended meanwhile."""
    connection.executemany(
        "UPDATE checkpoint SET sent = 1 WHERE number = ? AND mac = ?",
        [(checkpoint.number, checkpoint.mac) for checkpoint in checkpoints],
    )


def trail(connection: sqlite3.Connection) -> ChainTrail:
    """Returns the head and all checkpoints, unverified."""
    rows = connection.execute(f"SELECT {_CHECKPOINT} FROM checkpoint ORDER BY number")  # noqa: S608 - our own names
    return ChainTrail(head(connection), [_checkpoint(fields) for fields in rows], settled_seq(connection))


def last_numbers(connection: sqlite3.Connection) -> tuple[int, int]:
    """Returns the highest seq that the database shows as assigned, and the number of the last checkpoint."""
    last_seq, checkpoints = connection.execute(
        "SELECT max(coalesce((SELECT max(seq) FROM call), 0), coalesce((SELECT settled_seq FROM outbox), 0), "
        "coalesce((SELECT last_seq FROM head), 0)), coalesce((SELECT max(number) FROM checkpoint), 0)"
    ).fetchone()
    return last_seq, checkpoints


def settled_seq(connection: sqlite3.Connection) -> int:
    """Returns the seq up to which all rows are settled; 0 before the first send."""
    row = connection.execute("SELECT settled_seq FROM outbox").fetchone()
    return row[0] if row else 0


def existing_seqs(connection: sqlite3.Connection, seqs: Sequence[int]) -> list[int]:
    """Returns those of these seqs that have a row, in order."""
    rows = connection.execute(
        "SELECT seq FROM call WHERE seq IN (SELECT value FROM json_each(?)) ORDER BY seq", (json.dumps(seqs),)
    )
    return [seq for (seq,) in rows]


def mac_before(connection: sqlite3.Connection, seq: int) -> bytes:
    """Returns the mac of the row before a seq, or of the last row that retention removed before it."""
    row = connection.execute("SELECT mac FROM call WHERE seq = ?", (seq - 1,)).fetchone()
    if row is None:
        row = connection.execute(
            "SELECT mac_after FROM checkpoint WHERE kind = 'expired' AND last_seq = ? ORDER BY number DESC", (seq - 1,)
        ).fetchone()
    return row[0] if row and row[0] else GENESIS


class SqliteChainRecords:
    """``ChainRecords`` of a connection within a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def latest(self, kind: CheckpointKind) -> Checkpoint | None:
        return latest(self._connection, kind)

    def write_checkpoint(self, new: Checkpoint) -> None:
        write_checkpoint(self._connection, new)

    def last_numbers(self) -> tuple[int, int]:
        return last_numbers(self._connection)

    def mac_before(self, seq: int) -> bytes:
        return mac_before(self._connection, seq)


def _checkpoint(fields: Iterable[Any]) -> Checkpoint:
    number, kind, first_seq, last_seq, calls, since, until, before, after, mac = fields
    return Checkpoint(
        number=number, kind=kind, first_seq=first_seq, last_seq=last_seq, calls=calls, since=since, until=until,
        before=before, after=after, mac=mac,
    )  # fmt: skip
