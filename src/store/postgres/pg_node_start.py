"""The start of a node: checks that the database belongs to its service, and that its name is free."""

import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
import structlog

from ..node_lease import HEARTBEATS, NodeLease
from ..node_rows import NodeRow
from ..store_errors import StoreError
from . import pg_node_sql
from .pg_connection import shown_address
from .pg_schema import POSTGRES_SCHEMA

Connection = psycopg.Connection[tuple[Any, ...]]

_CHECK_INTERVAL_S: Final = 0.1
_WATCHED_HEARTBEATS: Final = 2
"""The missed heartbeats after which a process with the same name assumes that a node has ended."""

_log = structlog.get_logger(__name__)


class NodeNameTakenError(StoreError):
    """A node with this name is running."""

    def __init__(self, node: NodeRow) -> None:
        where = f" at {node.address}" if node.address else ""
        super().__init__(
            f"a node with the name {node.name!r} is running{where}: give each node its own `node_name`",
            "a node with the same name is running",
        )


def register_node(
    connection: Connection,
    address: str,
    *,
    epoch: str,
    name: str,
    lease: NodeLease,
    chain: str,
    listens: Callable[[str], bool] | None,
) -> list[NodeRow]:
    """Adds the row of a starting node, without its name. Returns the nodes with the same name that have ended without
    leaving; the caller declares them dead.

    A node that has the name is watched until its lease ends or, unless it is draining, until it has missed two
    heartbeats. With ``listens``, which returns whether something accepts connections at a node's announced address, the
    end of a node is found at once.

    Raises:
        NodeNameTakenError: a node with this name is running.
        StoreError: the database belongs to another service.
        psycopg.Error: the database cannot be read or written.
    """
    _require_chain(connection, address, chain)
    predecessors = pg_node_sql.alive_with_name(connection, name)
    for predecessor in predecessors:
        if (
            predecessor.state == "live"
            and listens is not None
            and predecessor.address
            and not listens(predecessor.address)
        ):
            continue
        _require_ended(connection, predecessor)
    pg_node_sql.end_stalled_transactions(connection, lease.lease_s)  # which the predecessors may have left
    pg_node_sql.insert(connection, epoch, lease.lease_s, POSTGRES_SCHEMA)
    return predecessors


def take_name(connection: Connection, epoch: str, name: str) -> None:
    """Gives its name to a node that has begun.

    Raises:
        StoreError: another node has it.
    """
    try:
        pg_node_sql.set_name(connection, epoch, name)
    except psycopg.errors.UniqueViolation:
        raise StoreError(
            f"another node with the name {name!r} has just started: give each node its own `node_name`",
            "another node has the same name",
        ) from None


def _require_chain(connection: Connection, address: str, chain: str) -> None:
    """Checks that this node signs the audit with the same key as the other nodes of its service."""
    connection.execute("UPDATE store SET chain = %s WHERE chain IS NULL", (chain,))
    row = connection.execute("SELECT chain FROM store").fetchone()
    if row is None or row[0] != chain:
        raise StoreError(
            f"the database {shown_address(address)} belongs to another service: its nodes sign the audit with another "
            "audit.key. Copy audit.key from the state folder of one of its nodes, or use another database",
            "the database belongs to another service",
        )


def _require_ended(connection: Connection, predecessor: NodeRow) -> None:
    before = pg_node_sql.commits(connection, predecessor.epoch)
    row = connection.execute("SELECT lease_s FROM node WHERE epoch = %s", (predecessor.epoch,)).fetchone()
    if before is None or row is None:
        return
    watched_s = predecessor.left_s
    if predecessor.state == "live":
        watched_s = min(float(row[0]) / HEARTBEATS * _WATCHED_HEARTBEATS, watched_s)
    if watched_s > 0:
        _log.info("waiting: a node with the same name has not left", name=predecessor.name, at_most_s=watched_s)
    deadline = time.monotonic() + watched_s
    while time.monotonic() < deadline:
        time.sleep(_CHECK_INTERVAL_S)
        now = pg_node_sql.commits(connection, predecessor.epoch)
        if now is None or now[1]:
            return
        if now[0] > before[0]:
            raise NodeNameTakenError(predecessor)
