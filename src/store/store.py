"""The store: its parts, its writer thread and its reader, for any of the databases."""

import asyncio
import concurrent.futures
from pathlib import Path
from typing import Final

from .a2a_task_store import A2ATaskStore
from .audit_trail import AuditTrail
from .call_journal import CallJournal
from .cluster_port import ClusterPort
from .conversation_store import ConversationStore
from .group_committer import Content
from .registry_entry_store import RegistryEntryStore
from .retention import Retention
from .session_store import SessionStore
from .store_port import StoreReader
from .store_writer import StoreWriter
from .user_credential_store import UserCredentialStore
from .vendor_file_store import VendorFileStore

CLOSE_TIMEOUT_S: Final = 5.0
"""How long a hanging write may delay the daemon's shutdown."""


class Store:
    """Gives access to the parts of an open database, and closes it. Created by ``open_sqlite_store``.

    ``path``: the directory or file whose disk the database fills. ``copy_conversations``: conversations are copied to
    Supabase.
    """

    def __init__(
        self,
        writer: StoreWriter,
        reader: StoreReader,
        *,
        path: Path,
        copy_conversations: bool = False,
        cluster: ClusterPort | None = None,
    ) -> None:
        self.cluster: Final = cluster
        """The nodes that share the database; None for an embedded database, which only this process uses."""
        self._path = path
        self._writer = writer
        self._reader = reader
        self.journal: Final = CallJournal(writer, reader)
        """Calls that are not local, from their start until their ids expire."""
        self.audit: Final = AuditTrail(writer, reader)
        """Audit rows, their sums, and their outbox to Supabase."""
        self.sessions: Final = SessionStore(writer, reader)
        """Sessions that can be resumed, and their calls."""
        self.conversations: Final = ConversationStore(
            writer, reader, copy_enabled=copy_conversations, shared=cluster is not None
        )
        """Conversations, and the outbox of their copies to Supabase."""
        self.vendor_files: Final = VendorFileStore(writer, reader)
        """The owners of the files that principals uploaded to vendors."""
        self.a2a_tasks: Final = A2ATaskStore(writer, reader)
        """The detached calls that are tasks of A2A, and their messages."""
        self.registry_entries: Final = RegistryEntryStore(writer, reader)
        """The entries of the registry that the daemon serves."""
        self.user_credentials: Final = UserCredentialStore(writer, reader)
        """Credentials that users gave for services, encrypted."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def problem(self) -> str | None:
        """The reason why writes currently fail; None if they succeed."""
        return self._writer.problem

    @property
    def is_open(self) -> bool:
        """Whether the database is open; if not, ``problem`` says why."""
        return self._writer.opened.done()

    async def opened(self) -> None:
        """Returns once the database is open: at once, unless the disk was full at the start."""
        await asyncio.wrap_future(self._writer.opened)

    @property
    def damage(self) -> str | None:
        """The first damage that a read found in the file, and the remedy; None if none was found."""
        return self._reader.damage

    def apply(self, content: Content, retention: Retention, *, copy_conversations: bool = False) -> None:
        """Applies new settings; retention soon deletes stored data accordingly."""
        self.conversations.copy_enabled = copy_conversations
        self._writer.apply(content, retention)

    async def flush(self) -> None:
        """Returns once all earlier writes have been committed, or have failed."""
        await asyncio.wrap_future(self._writer.flush())

    async def sync(self) -> None:
        """Returns once an empty commit has reached the disk, and all earlier commits with it.

        Raises:
            StoreError: the write fails.
        """
        await asyncio.wrap_future(self._writer.sync())

    async def close(self) -> None:
        """Writes queued entries within 5 s, and closes the file. A read that runs for another second is abandoned."""
        if self.cluster is not None:
            await self.cluster.close()
        # The reader first: SQLite checkpoints the WAL when the last connection that can write is closed.
        await self._reader.close()
        # On a separate thread, so that other work cannot delay it.
        closer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="store-closer")
        closing = asyncio.get_running_loop().run_in_executor(closer, self._writer.close, CLOSE_TIMEOUT_S)
        closer.shutdown(wait=False)
        await closing
