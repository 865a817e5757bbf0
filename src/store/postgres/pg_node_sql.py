"""The SQL of nodes on PostgreSQL: their rows and leases, and the declaration of a node as dead.

Functions run within the caller's transaction. Except for ``renew`` they fetch, so they do not run in a pipeline.
"""

from typing import Any, Final

import psycopg

from ..node_lease import HEARTBEATS, VALID_SHARE
from ..node_rows import NodeRow, Suspicion

Connection = psycopg.Connection[tuple[Any, ...]]

_LISTED: Final = "1 hour"
"""How long a dead node is listed."""
_NODE: Final = (
    "epoch, name, address, details, state, extract(epoch FROM until - clock_timestamp())::double precision AS left_s, "
    "lease_s"
)
_END_STALLED: Final = """
SELECT application_name, pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND usename = current_user AND application_name LIKE 'toold %% writer'
  AND xact_start IS NOT NULL AND wait_event = 'ClientRead'
  AND state_change < clock_timestamp() - %s * interval '1 second'
"""
# The rule of ``may_declare_dead``.
_BURY: Final = """
UPDATE node SET state = 'dead', ended_at = clock_timestamp()
WHERE epoch = %(epoch)s AND state <> 'dead'
  AND (until < clock_timestamp() OR (state = 'live' AND CASE %(suspicion)s
    WHEN 'none' THEN false
    WHEN 'silent' THEN until - lease_s * %(rest)s * interval '1 second' < clock_timestamp()
    ELSE true END))
"""


def renew(connection: Connection, node: str, commit_number: int) -> psycopg.Cursor[tuple[Any, ...]]:
    """Renews a node's lease for its next commit. The cursor has the database's time in Unix seconds. The statement and
    its transaction fail with the SQLSTATE TLD01 if the node is dead, TLD02 if one of its earlier commits is missing,
    and TLD03 if this commit was made before.
    """
    return connection.execute("SELECT renew_lease(%s, %s)", (node, commit_number))


def insert(connection: Connection, epoch: str, lease_s: float, schema: int) -> None:
    """Adds a live node that has no name and no commits yet; ``schema``: the newest schema that it knows."""
    connection.execute(
        "INSERT INTO node (epoch, name, state, until, lease_s, schema) "
        "VALUES (%(epoch)s, '', 'live', clock_timestamp() + %(lease_s)s * interval '1 second', %(lease_s)s, "
        "%(schema)s)",
        {"epoch": epoch, "lease_s": lease_s, "schema": schema},
    )


def set_name(connection: Connection, epoch: str, name: str) -> None:
    """Names a node.

    Raises:
        psycopg.errors.UniqueViolation: another living node has this name.
    """
    connection.execute("UPDATE node SET name = %s WHERE epoch = %s", (name, epoch))


def commits(connection: Connection, epoch: str) -> tuple[int, bool] | None:
    """Returns the number of a node's last commit, and whether it is dead; None if there is no such node."""
    row = connection.execute("SELECT commits, state = 'dead' FROM node WHERE epoch = %s", (epoch,)).fetchone()
    return None if row is None else (int(row[0]), bool(row[1]))


def find_node(connection: Connection, epoch: str) -> NodeRow | None:
    """Returns a node."""
    row = connection.execute(f"SELECT {_NODE} FROM node WHERE epoch = %s", (epoch,)).fetchone()
    return None if row is None else _node(row)


def list_nodes(connection: Connection) -> list[NodeRow]:
    """Returns the nodes that are not dead, and those that have been dead for less than an hour; the oldest first."""
    rows = connection.execute(
        f"SELECT {_NODE} FROM node WHERE state <> 'dead' OR ended_at > clock_timestamp() - interval '{_LISTED}' "
        "ORDER BY started_at, epoch"
    )
    return [_node(row) for row in rows.fetchall()]


def end_stalled_transactions(connection: Connection, lease_s: float) -> list[str]:
    """Closes the connections of writers that have sent nothing within a commit for the interval of the heartbeats.
    Returns the names of these connections.

    Such a node is paused. Its locks would stop the other nodes, and no node could declare it dead. The server's timeout
    for idle transactions does not apply, because within a pipeline a connection counts as active. A node that is alive
    connects again and sends the same commit again. Other connections use no pipeline, so that timeout is enough.
    """
    rows = connection.execute(_END_STALLED, (lease_s / HEARTBEATS,)).fetchall()
    return [str(name) for name, _ in rows]


def alive_with_name(connection: Connection, name: str) -> list[NodeRow]:
    """Returns the nodes with a name that are not dead."""
    rows = connection.execute(
        f"SELECT {_NODE} FROM node WHERE name = %s AND state <> 'dead' ORDER BY started_at",
        (name,),
    )
    return [_node(row) for row in rows.fetchall()]


def mark_dead(connection: Connection, epoch: str, suspicion: Suspicion, *, wait_s: float) -> bool:
    """Declares a node dead if ``may_declare_dead`` permits it; returns whether this statement did so.

    Raises:
        psycopg.errors.LockNotAvailable: a commit of the node has not ended within ``wait_s``.
    """
    values = {"epoch": epoch, "suspicion": suspicion, "rest": 1 - VALID_SHARE}
    connection.execute("SELECT set_config('lock_timeout', %s, true)", (f"{round(wait_s * 1000)}ms",))
    marked = connection.execute(_BURY, values).rowcount == 1
    connection.execute("SET LOCAL lock_timeout = 0")
    return marked


def is_dead(connection: Connection, epoch: str) -> bool:
    """Whether a node is dead or no longer in the table."""
    row = connection.execute("SELECT 1 FROM node WHERE epoch = %s AND state <> 'dead'", (epoch,)).fetchone()
    return row is None


def leave(connection: Connection, epoch: str) -> None:
    """Declares the caller's own node dead."""
    connection.execute(
        "UPDATE node SET state = 'dead', ended_at = clock_timestamp() WHERE epoch = %s AND state <> 'dead'", (epoch,)
    )


def announce(connection: Connection, epoch: str, address: str, details: str) -> None:
    """Stores the data that a node announces to the others."""
    connection.execute("UPDATE node SET address = %s, details = %s WHERE epoch = %s", (address, details, epoch))


def drain(connection: Connection, epoch: str) -> None:
    """Stores that a node is stopping."""
    connection.execute("UPDATE node SET state = 'draining' WHERE epoch = %s AND state = 'live'", (epoch,))


def fold_kept(connection: Connection, epoch: str) -> None:
    """Adds a dead node's part of the sums of results to the part of all dead nodes."""
    connection.execute(
        "WITH gone AS (DELETE FROM kept WHERE node = %s RETURNING principal, bytes, unfinished_bytes) "
        "INSERT INTO kept AS k SELECT principal, '', bytes, unfinished_bytes FROM gone ORDER BY principal "
        "ON CONFLICT (principal, node) DO UPDATE SET bytes = k.bytes + excluded.bytes, "
        "unfinished_bytes = k.unfinished_bytes + excluded.unfinished_bytes",
        (epoch,),
    )


def lock_live(connection: Connection, epoch: str) -> bool:
    """Whether a node is live. If so, no node can declare it dead before the transaction ends."""
    row = connection.execute("SELECT 1 FROM node WHERE epoch = %s AND state = 'live' FOR SHARE", (epoch,)).fetchone()
    return row is not None


def _node(row: tuple[Any, ...]) -> NodeRow:
    epoch, name, address, details, state, left_s, lease_s = row
    return NodeRow(
        epoch=epoch, name=name, address=address, details=details, state=state, left_s=left_s, lease_s=lease_s
    )
