"""Extends the audit chain, commit by commit."""

import contextlib
import sqlite3
from collections.abc import Iterator

import msgspec
import structlog

from ..audit_chain import ChainHead, ChainSigner
from ..chain_extension import ChainExtension, begin_chain
from ..store_limits import GROUP_WINDOW_S
from . import chain_checkpoints
from .store_schema import transaction

_log = structlog.get_logger(__name__)


class ChainWriter:
    """Holds the head of the chain between commits. Trusts only signed contents of the file, and no file that lacks
    commits of this process.

    ``expects_chain``: the key existed before this start, so there must be a chain to continue. Otherwise an attacker
    could remove the head, and the remaining rows would count as older than the chain.
    """

    def __init__(self, key: bytes, *, expects_chain: bool = False) -> None:
        self._signer = ChainSigner(key)
        self._expects_chain = expects_chain
        self._head: ChainHead | None = None
        self._dropped = 0
        self._warned = False

    @property
    def chain(self) -> str:
        """The name of the chain."""
        return self._signer.chain

    @property
    def last_seq(self) -> int:
        """The last assigned seq; 0 before the first commit."""
        return self._head.last_seq if self._head else 0

    @contextlib.contextmanager
    def extending(self, connection: sqlite3.Connection, *, closed: bool = False) -> Iterator[ChainExtension]:
        """Opens a transaction in which rows may be added and removed. ``closed``: this is the last transaction.

        Raises:
            sqlite3.Error: nothing was written.
        """
        with transaction(connection):
            extension = self._next(connection)
            yield extension
            extension.head = self._signer.head(msgspec.structs.replace(extension.head, closed=closed))
            chain_checkpoints.write_head(connection, extension.head)
        self._head, self._dropped = extension.head, extension.dropped

    def _next(self, connection: sqlite3.Connection) -> ChainExtension:
        stored = chain_checkpoints.head(connection)
        if stored is None or not self._signer.is_signed(stored):
            return self._extension(connection, self._head) if self._head else self._begin(connection)
        if self._head:
            # A commit that was reported as failed may have succeeded.
            return self._extension(connection, max(self._head, stored, key=lambda head: head.last_seq))
        extension = self._extension(connection, stored)
        if not stored.closed:
            self._warn_once("the daemon did not shut down cleanly; its last audit rows may be missing")
            extension.add_missing("gap", None, stored.at - GROUP_WINDOW_S)
        return extension

    def _warn_once(self, event: str) -> None:
        """Logs a warning once: if this commit fails, the next attempt has the same reason to warn."""
        if not self._warned:
            self._warned = True
            _log.warning(event)

    def _begin(self, connection: sqlite3.Connection) -> ChainExtension:
        return begin_chain(
            chain_checkpoints.SqliteChainRecords(connection),
            self._signer,
            self._dropped,
            expects_chain=self._expects_chain,
        )

    def _extension(self, connection: sqlite3.Connection, head: ChainHead) -> ChainExtension:
        return ChainExtension(chain_checkpoints.SqliteChainRecords(connection), self._signer, head, self._dropped)
