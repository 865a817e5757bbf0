"""The SQL of audit chains on PostgreSQL: the node that extends a chain, the chain's head, checkpoints and bindings."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
import psycopg

from ..audit_chain import GENESIS, ChainHead, ChainTrail, Checkpoint, CheckpointKind
from ..chain_binding import ChainEnd
from ..chain_extension import ChainExtension

Connection = psycopg.Connection[tuple[Any, ...]]

_CHECKPOINT: Final = "number, kind, first_seq, last_seq, calls, since, until, mac_before, mac_after, mac"
_HEAD: Final = "chain, last_seq, last_mac, checkpoints, at, closed, mac"
_LOCK: Final = 0x746F6F6C63
"""The key of the advisory lock of a node that adopts a chain, or changes chains that no node extends."""
_FREE: Final = "NOT EXISTS (SELECT FROM node WHERE node.epoch = chain.holder AND node.state <> 'dead')"
"""No node extends the chain."""


class PgChainRecords:
    """``ChainRecords`` of the chain with a number, on a connection within a transaction."""

    def __init__(self, connection: Connection, number: int) -> None:
        self._connection = connection
        self.number: Final = number

    def latest(self, kind: CheckpointKind) -> Checkpoint | None:
        row = self._connection.execute(
            f"SELECT {_CHECKPOINT} FROM checkpoint WHERE chain = %s AND kind = %s ORDER BY number DESC LIMIT 1",
            (self.number, kind),
        ).fetchone()
        return _checkpoint(row) if row else None

    def write_checkpoint(self, new: Checkpoint) -> None:
        fields = (
            new.number, new.kind, new.first_seq, new.last_seq, new.calls, new.since, new.until, new.before, new.after,
            new.mac,
        )  # fmt: skip
        replaced = ", ".join(f"{name} = excluded.{name}" for name in _CHECKPOINT.split(", "))
        self._connection.execute(
            f"INSERT INTO checkpoint (chain, {_CHECKPOINT}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) "
            f"ON CONFLICT (chain, number) DO UPDATE SET {replaced}, sent = false",
            (self.number, *fields),
        )

    def last_numbers(self) -> tuple[int, int]:
        (last_seq, checkpoints) = self._connection.execute(
            "SELECT greatest((SELECT max(seq) FROM call WHERE chain = %(chain)s), "
            "(SELECT settled_seq FROM outbox WHERE chain = %(chain)s), "
            "(SELECT last_seq FROM chain WHERE number = %(chain)s), 0), "
            "coalesce((SELECT max(number) FROM checkpoint WHERE chain = %(chain)s), 0)",
            {"chain": self.number},
        ).fetchone() or (0, 0)
        return int(last_seq), int(checkpoints)

    def mac_before(self, seq: int) -> bytes:
        row = self._connection.execute(
            "SELECT mac FROM call WHERE chain = %s AND seq = %s", (self.number, seq - 1)
        ).fetchone()
        if row is None:
            row = self._connection.execute(
                "SELECT mac_after FROM checkpoint WHERE chain = %s AND kind = 'expired' AND last_seq = %s "
                "ORDER BY number DESC",
                (self.number, seq - 1),
            ).fetchone()
        return row[0] if row and row[0] else GENESIS

    def write_head(self, new: ChainHead) -> None:
        """Replaces the head; inserts the chain if it is new."""
        names = _HEAD.split(", ")
        self._connection.execute(
            f"INSERT INTO chain (number, {_HEAD}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s) "
            f"ON CONFLICT (number) DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in names)}",
            (self.number, new.chain, new.last_seq, new.last_mac, new.checkpoints, new.at, new.closed, new.mac),
        )


def number_of(chain: ChainExtension) -> int:
    """The number of the chain that is extended."""
    return records_of(chain).number


def records_of(chain: ChainExtension) -> PgChainRecords:
    """Returns the records of the chain that is extended."""
    assert isinstance(chain.records, PgChainRecords)  # noqa: S101 - this package makes no others
    return chain.records


def adopt(connection: Connection, epoch: str) -> tuple[int, bool]:
    """Makes a node the holder of the first chain that no node extends. Call it at the beginning of a transaction; until
    the transaction ends, no other node adopts a chain. Returns the chain's number, and whether the chain is new, so
    that the caller must insert it.
    """
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    row = connection.execute(
        f"UPDATE chain SET holder = %s WHERE number = (SELECT number FROM chain WHERE {_FREE} "
        "ORDER BY number LIMIT 1) RETURNING number",
        (epoch,),
    ).fetchone()
    if row is not None:
        return int(row[0]), False
    (number,) = connection.execute("SELECT coalesce(max(number), -1) + 1 FROM chain").fetchone() or (0,)
    return int(number), True


def set_holder(connection: Connection, number: int, epoch: str | None) -> None:
    """Sets which node extends a chain."""
    connection.execute("UPDATE chain SET holder = %s WHERE number = %s", (epoch, number))


def lock_free(connection: Connection) -> list[int]:
    """Returns the numbers of the chains that no node extends; until the transaction ends, no node adopts one of them.
    Returns None if another transaction has this lock.
    """
    (locked,) = connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,)).fetchone() or (False,)
    if not locked:
        return []
    return [number for (number,) in connection.execute(f"SELECT number FROM chain WHERE {_FREE} ORDER BY number")]


def numbers(connection: Connection) -> list[int]:
    """Returns the numbers of all chains."""
    return [number for (number,) in connection.execute("SELECT number FROM chain ORDER BY number")]


def head(connection: Connection, number: int) -> ChainHead | None:
    """Returns the head of a chain, unverified."""
    row = connection.execute(f"SELECT {_HEAD} FROM chain WHERE number = %s", (number,)).fetchone()
    if row is None:
        return None
    chain, last_seq, last_mac, checkpoints, at, closed, mac = row
    return ChainHead(
        chain=chain, last_seq=last_seq, last_mac=last_mac, checkpoints=checkpoints, at=at, closed=closed, mac=mac
    )


def trail(connection: Connection, number: int) -> ChainTrail:
    """Returns the head and all checkpoints of a chain, unverified."""
    rows = connection.execute(
        f"SELECT {_CHECKPOINT} FROM checkpoint WHERE chain = %s ORDER BY number",
        (number,),
    )
    checkpoints = [_checkpoint(fields) for fields in rows]
    return ChainTrail(head(connection, number), checkpoints, settled_seq(connection, number))


def unsent(connection: Connection, number: int, limit: int) -> list[Checkpoint]:
    """Returns the checkpoints of a chain whose current version Supabase does not have, by number."""
    rows = connection.execute(
        f"SELECT {_CHECKPOINT} FROM checkpoint WHERE chain = %s AND NOT sent ORDER BY number LIMIT %s",
        (number, limit),
    )
    return [_checkpoint(fields) for fields in rows]


def mark_sent(connection: Connection, number: int, checkpoints: Iterable[Checkpoint]) -> None:
    """Marks checkpoints as sent, except those that were extended meanwhile."""
    for checkpoint in checkpoints:
        connection.execute(
            "UPDATE checkpoint SET sent = true WHERE chain = %s AND number = %s AND mac = %s",
            (number, checkpoint.number, checkpoint.mac),
        )


def settled_seq(connection: Connection, number: int) -> int:
    """Returns the seq up to which all rows of a chain are settled; 0 before the first send."""
    row = connection.execute("SELECT settled_seq FROM outbox WHERE chain = %s", (number,)).fetchone()
    return int(row[0]) if row else 0


def existing_seqs(connection: Connection, number: int, seqs: Sequence[int]) -> list[int]:
    """Returns those of these seqs that have a row, in order."""
    rows = connection.execute(
        "SELECT seq FROM call WHERE chain = %s AND seq = ANY(%s) ORDER BY seq", (number, list(seqs))
    )
    return [seq for (seq,) in rows]


def ends(connection: Connection, *, but: int) -> list[ChainEnd]:
    """Returns the committed ends of all chains except one, by name."""
    rows = connection.execute(
        'SELECT chain, last_seq, last_mac FROM chain WHERE number <> %s ORDER BY chain COLLATE "C"', (but,)
    )
    return [ChainEnd(chain=chain, seq=seq, mac=mac.hex()) for chain, seq, mac in rows]


def write_binding(connection: Connection, number: int, bound: Sequence[ChainEnd]) -> None:
    """Stores the ends of the other chains, whose hash is in the chain's last checkpoint ``bound``."""
    connection.execute(
        "INSERT INTO chain_binding (chain, ends) VALUES (%s, %s) "
        "ON CONFLICT (chain) DO UPDATE SET ends = excluded.ends",
        (number, msgspec.json.encode(bound).decode()),
    )


def binding(connection: Connection, number: int) -> list[ChainEnd] | None:
    """Returns the stored ends of the other chains, unverified; None if there are none."""
    row = connection.execute("SELECT ends FROM chain_binding WHERE chain = %s", (number,)).fetchone()
    try:
        return None if row is None else msgspec.json.decode(row[0], type=list[ChainEnd])
    except msgspec.MsgspecError:
        return None


def mac_at(connection: Connection, number: int, seq: int) -> bytes | None:
    """Returns the mac of a row of a chain; None if there is no such row."""
    row = connection.execute("SELECT mac FROM call WHERE chain = %s AND seq = %s", (number, seq)).fetchone()
    return None if row is None else row[0]


def _checkpoint(fields: Iterable[Any]) -> Checkpoint:
    number, kind, first_seq, last_seq, calls, since, until, before, after, mac = fields
    return Checkpoint(
        number=number, kind=kind, first_seq=first_seq, last_seq=last_seq, calls=calls, since=since, until=until,
        before=before, after=after, mac=mac,
    )  # fmt: skip
