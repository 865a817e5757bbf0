"""Extends one of the audit chains on PostgreSQL, in each commit."""

from typing import Any

import msgspec
import psycopg
import structlog

from ..audit_chain import ChainHead, ChainSigner
from ..chain_binding import ChainEnd, bound_hash, chain_key
from ..chain_extension import ChainExtension, begin_chain
from ..store_limits import GROUP_WINDOW_S
from . import pg_chain_sql
from .pg_chain_sql import PgChainRecords

Connection = psycopg.Connection[tuple[Any, ...]]

_log = structlog.get_logger(__name__)


class PostgresChainWriter:
    """The chain that this node extends, and its head between commits.

    For each commit, call ``extend``, then ``seal`` before the transaction ends, then ``committed``. The node's fence
    protects the chain: a node that was declared dead cannot commit.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._signers: dict[int, ChainSigner] = {}
        self._number = -1
        self._head: ChainHead | None = None
        self._dropped = 0
        self._bound: list[ChainEnd] = []

    @property
    def number(self) -> int:
        """The number of the chain; -1 before ``adopt``."""
        return self._number

    @property
    def adopted(self) -> bool:
        """Whether this node extends a chain."""
        return self._number >= 0

    @property
    def chain(self) -> str:
        """The name of the chain."""
        return self.signer(self._number).chain

    @property
    def last_seq(self) -> int:
        """The last assigned seq; 0 before ``adopt``."""
        return self._head.last_seq if self._head else 0

    def signer(self, number: int) -> ChainSigner:
        """Returns the signer of the chain with a number."""
        if number not in self._signers:
            self._signers[number] = ChainSigner(chain_key(self._key, number))
        return self._signers[number]

    def adopt(self, connection: Connection, epoch: str) -> None:
        """Makes a node the holder of a chain that no node extends, or of a new chain, within the caller's transaction.

        Raises:
            psycopg.Error: roll the transaction back.
        """
        number, is_new = pg_chain_sql.adopt(connection, epoch)
        chain = self._new(connection, number) if is_new else self._continued(connection, number)
        self._number = pg_chain_sql.number_of(chain)
        self._head, self._bound = None, []
        self.seal(chain)
        pg_chain_sql.set_holder(connection, self._number, epoch)
        self.committed(chain)

    def _new(self, connection: Connection, number: int) -> ChainExtension:
        return begin_chain(PgChainRecords(connection, number), self.signer(number), 0, expects_chain=False)

    def _continued(self, connection: Connection, number: int) -> ChainExtension:
        records, signer = PgChainRecords(connection, number), self.signer(number)
        stored = pg_chain_sql.head(connection, number)
        if stored is None or not signer.is_signed(stored):
            return begin_chain(records, signer, 0, expects_chain=True)
        chain = ChainExtension(records, signer, stored, 0)
        if not stored.closed:
            _log.warning("a node did not shut down cleanly; its last audit rows may be missing", chain=number)
            chain.add_missing("gap", None, stored.at - GROUP_WINDOW_S)
        return chain

    def extend(self, connection: Connection) -> ChainExtension:
        """Begins to extend this node's chain in the transaction of a connection. Reads nothing."""
        assert self._head is not None  # noqa: S101 - adopt comes first
        records = PgChainRecords(connection, self._number)
        return ChainExtension(records, self.signer(self._number), self._head, self._dropped)

    def seal(self, chain: ChainExtension, *, closed: bool = False) -> None:
        """Signs the head of a chain and writes it. ``closed``: the transaction is the last one of this node."""
        chain.head = chain.signer.head(msgspec.structs.replace(chain.head, closed=closed))
        pg_chain_sql.records_of(chain).write_head(chain.head)

    def committed(self, chain: ChainExtension) -> None:
        """Records that the transaction that extended this node's chain was committed."""
        self._head, self._dropped = chain.head, chain.dropped

    def reload(self, connection: Connection) -> None:
        """Reads the head again, after a transaction that was reported as failed but was committed."""
        stored = pg_chain_sql.head(connection, self._number)
        if stored is not None and self.signer(self._number).is_signed(stored):
            self._head = stored

    def bind(self, connection: Connection, chain: ChainExtension) -> None:
        """Binds this node's chain to the current ends of the other chains, if they have changed since the last time."""
        ends = pg_chain_sql.ends(connection, but=self._number)
        if ends != self._bound:
            chain.add_bound(bound_hash(ends))
            pg_chain_sql.write_binding(connection, self._number, ends)
            self._bound = ends

    def extend_free(self, connection: Connection) -> list[ChainExtension]:
        """Begins to extend the chains that no node extends, and locks them until the transaction ends. Call ``seal``
        for each.

        Chains without a valid head are left to the node that adopts them.
        """
        free = []
        for number in pg_chain_sql.lock_free(connection):
            head, signer = pg_chain_sql.head(connection, number), self.signer(number)
            if head is not None and signer.is_signed(head):
                free.append(ChainExtension(PgChainRecords(connection, number), signer, head, 0))
        return free
