"""The store: one SQLite file, its writer thread and its reader thread."""

import asyncio
import concurrent.futures
from pathlib import Path
from typing import Final

from .a2a_task_store import A2ATaskStore
from .audit_trail import AuditTrail
from .call_journal import CallJournal
from .committer import Content
from .conversation_store import ConversationStore
from .registry_entry_store import RegistryEntryStore
from .retention import Retention
from .session_store import SessionStore
from .store_reader import StoreReader
from .store_writer import StoreWriter
from .user_credential_store import UserCredentialStore
from .vendor_file_store import VendorFileStore

CLOSE_TIMEOUT_S: Final = 5.0
"""How long a hanging write may delay the daemon's shutdown."""


class Store:
    """Opens and closes the database, and gives access to its parts.

    ``content`` reduces the arguments of calls to what the audit rows show. ``key`` (``KEY_BYTES`` long) signs the audit
    chain; ``expects_chain``: the key signed one before this start. ``copy_conversations``: conversations are copied to
    Supabase.

    Raises:
        NewerSchemaError: a newer toold wrote the file.
        StoreError: the file cannot be created, read or written. If only a full disk prevents this, nothing is raised:
            ``problem`` is set until the disk has space.
    """

    def __init__(
        self,
        path: Path,
        *,
        content: Content,
        retention: Retention,
        key: bytes,
        expects_chain: bool = False,
        copy_conversations: bool = False,
    ) -> None:
        self._path = path
        self._writer = StoreWriter(path, content=content, retention=retention, key=key, expects_chain=expects_chain)
        self._reader = StoreReader(path, self._writer.flush)
        self.journal: Final = CallJournal(self._writer, self._reader)
        """Calls that are not local, from their start until their ids expire."""
        self.audit: Final = AuditTrail(self._writer, self._reader)
        """Audit rows, their sums, and their outbox to Supabase."""
        self.sessions: Final = SessionStore(self._writer, self._reader)
        """Sessions that can be resumed, and their calls."""
        self.conversations: Final = ConversationStore(self._writer, self._reader, copy_enabled=copy_conversations)
        """Conversations, and the outbox of their copies to Supabase."""
        self.vendor_files: Final = VendorFileStore(self._writer, self._reader)
        """Which principal uploaded which file to a vendor."""
        self.a2a_tasks: Final = A2ATaskStore(self._writer, self._reader)
        """Which detached calls are tasks of A2A, and their messages."""
        self.registry_entries: Final = RegistryEntryStore(self._writer, self._reader)
        """The entries of the registry that the daemon serves."""
        self.user_credentials: Final = UserCredentialStore(self._writer, self._reader)
        """Credentials that users gave for services, encrypted."""

    @property
    def path(self) -> Path:
        """The database file."""
        return self._path

    @property
    def problem(self) -> str | None:
        """Why writes fail at present; None if they succeed."""
        return self._writer.problem

    @property
    def is_open(self) -> bool:
        """Whether the database is open; if not, ``problem`` says why."""
        return self._writer.opened.done()

    async def opened(self) -> None:
        """Returns once the database is open: at once, unless the disk was too full for that at the start."""
        await asyncio.wrap_future(self._writer.opened)

    @property
    def damage(self) -> str | None:
        """The first damage that a read found in the file, and the remedy; None if none was found."""
        return self._reader.damage

    def apply(self, content: Content, retention: Retention, *, copy_conversations: bool = False) -> None:
        """Applies new settings; stored data is soon deleted accordingly."""
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
        """Writes what is queued, within 5 s, and closes the file. A read that runs for another second is abandoned."""
        # The reader first: SQLite checkpoints the WAL when the last connection that can write is closed.
        await self._reader.close()
        # On a separate thread, so that other work cannot delay it.
        closer = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="store-closer")
        closing = asyncio.get_running_loop().run_in_executor(closer, self._writer.close, CLOSE_TIMEOUT_S)
        closer.shutdown(wait=False)
        await closing
