"""Commits the entries of one node to PostgreSQL, on the writer's thread.

Each commit has a number, renews the node's lease, and fails if another node has declared this one dead. If the
connection is lost during a commit, its outcome is unknown: the same group is sent again with the same number, and the
database refuses it if it was already committed. Nothing is reported before the outcome is known.
"""

import contextlib
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import psycopg
import structlog

from ..audit_chain import ChainSigner
from ..chain_extension import ChainExtension
from ..commit_entries import (
    CommitItem,
    Entry,
    NodeDeclaredDead,
    NodeLeft,
    RetentionDue,
)
from ..conversation_rows import ConversationUpdate
from ..group_committer import Content, GroupCommitter
from ..node_lease import HEARTBEATS, NodeLease, boot_time
from ..node_rows import Suspicion
from ..retention import Retention
from ..store_clock import StoreClock
from ..store_errors import NodeFencedError, StoreError
from . import pg_audit_sql, pg_journal_sql, pg_node_sql, pg_retention
from .pg_chain_writer import PostgresChainWriter
from .pg_commit_errors import DATA_ERRORS, is_lost
from .pg_commit_group import AWAITED_ENTRIES, GroupWrite, decided_items, keys_of_decided
from .pg_connection import connect_to_postgres, reason_of, shown_address
from .pg_fenced_commits import FencedCommits, roll_back
from .pg_node_settlement import settle_node
from .pg_node_start import register_node, take_name
from .pg_schema import require_schema

Connection = psycopg.Connection[tuple[Any, ...]]

RETENTION_EVERY_S: Final = 3600.0
RETENTION_TRIGGER_RATIO: Final = 17 / 16
"""The share of the audit rows' size limit beyond which retention runs before the hour is over."""
CHECKED_EVERY_S: Final = 60.0
"""How often the size of all rows is checked."""

_log = structlog.get_logger(__name__)


class PostgresCommitter(GroupCommitter):
    """Commits as one node. Used by one thread at a time.

    ``on_fenced`` is called once, on this thread, with the reason, before the entries of the refused commit are
    reported.

    Raises:
        StoreError: the database cannot be used; the message says why and what to do.
    """

    def __init__(
        self,
        address: str,
        *,
        epoch: str,
        node_name: str,
        lease: NodeLease,
        content: Content,
        retention: Retention,
        key: bytes,
        on_fenced: Callable[[str], None],
        listens: Callable[[str], bool] | None = None,
    ) -> None:
        super().__init__(content=content, retention=retention)
        self._address = address
        self.epoch: Final = epoch
        self.lease: Final = lease
        self.on_fenced = on_fenced
        self._name = node_name
        self._key_name = ChainSigner(key).chain
        self._chain_writer = PostgresChainWriter(key)
        self._size_check_due = 0.0  # when the size of all rows is checked next, in ``time.monotonic`` seconds
        self._commits = FencedCommits(epoch, lease, self._chain_writer, self._set_clock)
        self._sent: list[CommitItem] = []  # sent with the next number; it is unknown whether they were committed
        self._ended: str | None = None  # why this node commits nothing from now on
        connection = self._connect()
        try:
            require_schema(connection, address)
            predecessors = register_node(
                connection, address, epoch=epoch, name=node_name, lease=lease, chain=self._key_name, listens=listens
            )
            self._connection: Connection = connection
            self._start(connection, [predecessor.epoch for predecessor in predecessors])
            take_name(connection, epoch, node_name)
        except psycopg.Error as error:
            connection.close()
            raise StoreError(
                f"the database {shown_address(address)} cannot be used ({reason_of(error)})", reason_of(error)
            ) from None
        except BaseException:
            connection.close()
            raise
        self.opened.set_result(None)

    @property
    def chain(self) -> str:
        """The name of the audit chain that this node extends."""
        return self._chain_writer.chain

    @property
    def chain_number(self) -> int:
        """The number of the audit chain that this node extends."""
        return self._chain_writer.number

    @property
    def uncommitted(self) -> int:
        """The number of items that were added and may not be committed."""
        return len(self.group) + len(self._sent)

    def awaits(self, entry: Entry) -> bool:
        """Whether a caller waits for this entry as long as the database is away."""
        return self._ended is None and isinstance(entry, AWAITED_ENTRIES)

    def idle_s(self) -> float:
        """Returns the seconds until the next heartbeat or retention run."""
        heartbeat_s = max(0.0, self._commits.heartbeat_due - boot_time())
        heartbeat_s = min(heartbeat_s, super().idle_s())
        return heartbeat_s if self._ended is None else 3600.0

    def _heartbeat_due(self) -> bool:
        return boot_time() >= self._commits.heartbeat_due

    def attempt(self) -> None:
        """Commits the added items, or a heartbeat. Sets ``problem`` on failure."""
        if self._ended is not None:
            self._refuse_all(self._ended)
            return
        try:
            try:
                self._attempt(self._usable_connection())
            except psycopg.Error:
                if not self._connection.closed:
                    raise
                self._attempt(self._usable_connection())  # most often, the server answers again at once
        except (psycopg.Error, StoreError, OSError) as error:
            self.fail(error)

    def _attempt(self, connection: Connection) -> None:
        if self.uncommitted or self.problem or self._heartbeat_due():
            self._commit_queued(connection)
            self.work_again()
        self._enforce_retention(connection)

    def close(self) -> None:
        """Leaves the cluster if the database answers, and closes the connection."""
        if self._ended is None and not self.problem and not self.uncommitted:
            self.add(CommitItem(NodeLeft()))
            self.attempt()
        with contextlib.suppress(psycopg.Error):
            self._connection.close()

    def fail(self, error: Exception, *, exc_info: bool = False) -> None:
        """Fails the items that were certainly not written and whose callers do not wait; the rest is tried again."""
        if isinstance(error, NodeFencedError):
            self._end(error.reason)
            return
        super().fail(error, exc_info=exc_info)

    def _set_clock(self, clock: StoreClock) -> None:
        self.clock = clock

    def _by_store_clock(self, entry: Entry) -> Entry:
        """Conversations expire by the database's clock, too."""
        if isinstance(entry, ConversationUpdate):
            return msgspec.structs.replace(entry, at=self.clock.stored_time(entry.at))
        return super()._by_store_clock(entry)

    # --- the connection ----------------------------------------------------------------------------------------------

    def _connect(self) -> Connection:
        name = f"toold {self._name} writer"
        return connect_to_postgres(self._address, name=name, lost_after_s=self.lease.lease_s, node=self.epoch)

    def _usable_connection(self) -> Connection:
        if self._connection.closed:
            self._connection = self._connect()
        return self._connection

    # --- commits -----------------------------------------------------------------------------------------------------

    def _commit_queued(self, connection: Connection) -> None:
        if self._sent:
            self._commit_sent(connection)
        elif not self.group:
            self.group.append(CommitItem(None))  # a heartbeat, which may be uncertain like any other group
        while self.group:
            # Declaring a node dead reads stored data, so it is a separate transaction.
            alone = not _is_ordinary(self.group[0])
            count = 1 if alone else len(list(itertools.takewhile(_is_ordinary, self.group)))
            self._sent, self.group = self.group[:count], self.group[count:]
            self._commit_sent(connection)
            if self._ended is not None:
                self._refuse_all(self._ended)

    def _commit_sent(self, connection: Connection) -> None:
        """Commits the items of ``_sent``. They stay there if it is unknown whether they were committed."""
        items = self._sent
        try:
            over: list[tuple[str, int, int]] = []
            if isinstance(items[0].entry, NodeDeclaredDead | NodeLeft):
                self._declare_dead(connection, items[0])
            elif isinstance(items[0].entry, RetentionDue):
                self._delete_slice(connection)
            else:
                over = self._commit_items(connection, items)
        except NodeFencedError:
            raise
        except Exception as error:
            if is_lost(connection, error):
                connection.close()
                raise
            roll_back(connection)
            if not isinstance(error, DATA_ERRORS) and isinstance(error, psycopg.Error | OSError):
                self._sent, self.group = [], [*items, *self.group]  # certainly not written
                raise
            self._commit_one_by_one(connection, error)
            return
        self._sent = []
        for principal, excess, unfinished_excess in over:
            with connection.transaction():
                pg_journal_sql.delete_oldest_results(connection, principal, excess, unfinished_excess)

    def _commit_one_by_one(self, connection: Connection, error: Exception) -> None:
        """Commits the sent items one by one, because one of them fails its group, and skips that one."""
        alone = len(self._sent) == 1
        rest, self._sent = self._sent, []
        while rest:
            item = rest.pop(0)
            if alone:
                self._give_up(item, error)
                continue
            self._sent, self.group = [item], [*rest, *self.group]
            count = len(rest)
            self._commit_sent(connection)
            rest, self.group = self.group[:count], self.group[count:]

    def _give_up(self, item: CommitItem, error: Exception) -> None:
        reason = reason_of(error) if isinstance(error, psycopg.Error) else str(error)
        _log.warning("entry cannot be stored", reason=reason)
        if item.row is not None:
            self.unwritable_rows += 1
            item.row = None
            if item.entry is not None:  # the end of a call matters more than its audit row
                self.group.insert(0, item)
                return
        item.fail("the entry cannot be stored")

    def _commit_items(self, connection: Connection, items: Sequence[CommitItem]) -> list[tuple[str, int, int]]:
        """Commits items in one transaction and reports them. Returns the principals whose results exceed a limit."""
        writes: list[GroupWrite] = []

        def write(chain: ChainExtension) -> None:
            writes.append(self._group_write(connection, chain))
            writes[0].write(items)

        def fetch() -> None:
            writes[0].set_accepted()

        if not self._commits.pipelined(connection, write, fetch, self.rows_dropped):
            self._resolve_earlier(connection, items)
            return []
        self._report(items)
        return writes[0].over_limits()

    def _group_write(self, connection: Connection, chain: ChainExtension) -> GroupWrite:
        return GroupWrite(
            connection,
            chain,
            self.epoch,
            self._commits.next_number,
            results_bytes=self.retention.results_bytes,
            unfinished_bytes=self.retention.unfinished_bytes,
        )

    def _resolve_earlier(self, connection: Connection, items: Sequence[CommitItem]) -> None:
        """Finds the rows of a group that was committed before its connection was lost."""
        decided, number = keys_of_decided(items), self._commits.next_number
        written = pg_journal_sql.written(connection, list(decided), self.epoch, number)
        self._commits.skip(connection)
        for item, key in decided_items(items):
            item.accepted = key in written and decided[key] is item
        _log.info("a commit had reached the database before the connection was lost", commit=number)
        self._report(items)

    def _report(self, items: Sequence[CommitItem]) -> None:
        self.work_again()  # before a caller, who may continue with another write, learns about this one
        self.rows_written += sum(item.row is not None for item in items)
        for item in items:
            if isinstance(item.entry, ConversationUpdate):
                self.copy_changes += len(item.entry.copies)
            item.succeed()

    # --- the death of a node -----------------------------------------------------------------------------------------

    def _start(self, connection: Connection, predecessors: Sequence[str]) -> None:
        """The first commit: settles ended nodes with the same name, and takes over an audit chain."""

        dead: list[str] = []

        def prepare() -> None:
            dead.extend(epoch for epoch in predecessors if self._mark(connection, epoch, "replaced"))

        def work(chain: ChainExtension) -> None:
            for epoch in dead:
                self._settle(connection, epoch, chain)

        self._commits.begin(connection, prepare, work)

    def _declare_dead(self, connection: Connection, item: CommitItem) -> None:
        """Declares a node dead (or this one, if it leaves) and settles it, in one transaction."""
        leaves = isinstance(item.entry, NodeLeft)
        epoch = item.entry.epoch if isinstance(item.entry, NodeDeclaredDead) else self.epoch

        def work(chain: ChainExtension) -> None:
            item.accepted = self._mark_dead(connection, item)
            if item.accepted:
                self._settle(connection, epoch, chain)
            else:
                item.accepted = pg_node_sql.is_dead(connection, epoch)
            if leaves:
                self._chain_writer.bind(connection, chain)

        try:
            if not self._commits.alone(connection, work, self.rows_dropped, closed=leaves):
                item.accepted = pg_node_sql.is_dead(connection, epoch)
        except psycopg.errors.LockNotAvailable:  # it is within a commit, so it may be alive: this node must not wait
            roll_back(connection)
            item.accepted = False
        if leaves:
            self._ended = "this node has left the cluster"
        item.succeed()

    def _mark_dead(self, connection: Connection, item: CommitItem) -> bool:
        if isinstance(item.entry, NodeDeclaredDead):
            return self._mark(connection, item.entry.epoch, item.entry.suspicion)
        pg_node_sql.leave(connection, self.epoch)
        return True

    def _mark(self, connection: Connection, epoch: str, suspicion: Suspicion) -> bool:
        return pg_node_sql.mark_dead(connection, epoch, suspicion, wait_s=self.lease.lease_s / HEARTBEATS)

    def _settle(self, connection: Connection, epoch: str, chain: ChainExtension) -> None:
        write = self._group_write(connection, chain)
        self.unwritable_rows += settle_node(
            connection,
            epoch,
            self.clock,
            lambda calls: write.write([self.prepared(CommitItem(call)) for call in calls]),
        )

    # --- retention ---------------------------------------------------------------------------------------------------

    def _enforce_retention(self, connection: Connection) -> None:
        """Deletes a slice of expired data if retention is due: at the start, every hour, and when the audit rows have
        outgrown their limit.
        """
        if time.monotonic() >= self._size_check_due:
            self._size_check_due = time.monotonic() + CHECKED_EVERY_S
            if pg_audit_sql.stored_bytes(connection) > RETENTION_TRIGGER_RATIO * self.retention.bytes:
                self.retention_due = 0.0
        if self._ended is None and time.monotonic() >= self.retention_due:
            self._sent = [CommitItem(RetentionDue())]
            self._commit_sent(connection)

    def _delete_slice(self, connection: Connection) -> None:
        more = False

        def work(chain: ChainExtension) -> None:
            nonlocal more
            more = pg_retention.enforce_retention(connection, chain, self._chain_writer, self.retention)

        if self._commits.alone(connection, work, self.rows_dropped):
            self.copy_changes += 1
            self.retention_due = time.monotonic() + (0.0 if more else RETENTION_EVERY_S)

    # --- failures ----------------------------------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        """Ends this node. Its entries may no longer be reported to clients."""
        self._ended = self.problem = reason
        self.lease.fence(reason)
        _log.error("this node is fenced: the process ends", reason=reason)
        self.on_fenced(reason)
        self._refuse_all(reason)

    def _refuse_all(self, reason: str) -> None:
        rows = 0
        for item in (*self._sent, *self.group):
            rows += item.row is not None
            item.fail_with(NodeFencedError(reason))
        if rows:
            _log.error("audit rows lost", rows=rows, reason=reason)
            self.unwritable_rows += rows
        self._sent, self.group = [], []

    def _reason(self, error: Exception) -> str:
        if isinstance(error, StoreError):
            return error.reason
        return reason_of(error) if isinstance(error, psycopg.Error) else type(error).__name__


def _is_ordinary(item: CommitItem) -> bool:
    return not isinstance(item.entry, NodeDeclaredDead | NodeLeft | RetentionDue)
