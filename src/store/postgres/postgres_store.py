"""Opens the store on a PostgreSQL database, as one node of a service."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from ..group_committer import Content
from ..node_lease import NodeLease
from ..retention import Retention
from ..store import Store
from ..store_writer import StoreWriter
from .postgres_cluster import PostgresCluster
from .postgres_committer import PostgresCommitter
from .postgres_reader import PostgresReader
from .postgres_threads import PostgresThreads

LIMITS_THREADS: Final = 2
"""Separate threads for limits: their statements take milliseconds, and must not wait for searches."""


def open_postgres_store(
    address: str,
    *,
    epoch: str,
    node_name: str,
    lease_s: float,
    content: Content,
    retention: Retention,
    key: bytes,
    path: Path,
    on_fenced: Callable[[str], None],
    expects_chain: bool = False,  # noqa: ARG001 - the chains of nodes are not written yet
    copy_conversations: bool = False,
    listens: Callable[[str], bool] | None = None,
) -> Store:
    """Opens the store as the node ``epoch``; the ids of its calls begin with the epoch. ``node_name`` is unique in the
    service.

    If a node with this name has ended without leaving, its calls and sessions are settled first. Its end is detected
    within half of its lease, or at once with ``listens``, which returns whether an announced address accepts
    connections.

    ``content`` reduces the arguments of calls for the audit rows. ``key`` (``KEY_BYTES`` long) signs the audit
    chains of all nodes of the service. ``path`` is the state directory. If this process must end, ``on_fenced`` is
    called once with the reason, on the writer's thread.

    Raises:
        UnmigratedError: the database has no schema of toold, or an older one.
        NewerPostgresSchemaError: a newer toold has migrated it.
        NodeNameTakenError: a node with this name is running.
        StoreError: it cannot be reached or used, or belongs to another service or program.
    """
    committer = PostgresCommitter(
        address,
        epoch=epoch,
        node_name=node_name,
        lease=NodeLease(lease_s),
        content=content,
        retention=retention,
        key=key,
        on_fenced=on_fenced,
        listens=listens,
    )
    writer = StoreWriter(committer)
    reader = PostgresReader(
        address,
        epoch=epoch,
        node_name=node_name,
        lease_s=lease_s,
        flush=writer.flush,
        check_lease=writer.sync,
        chain=lambda: committer.chain_number,
    )
    threads = PostgresThreads(
        address, name=f"toold {node_name} limits", epoch=epoch, lease_s=lease_s, threads=LIMITS_THREADS
    )
    cluster = PostgresCluster(committer, writer, threads)
    return Store(writer, reader, path=path, copy_conversations=copy_conversations, cluster=cluster)
