"""The entries that the writer commits, of all parts of the store, each with the future that awaits it."""

import concurrent.futures
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from .a2a_push_rows import A2APushDeleted, A2APushProgress, A2APushRow
from .a2a_task_rows import A2ATaskRow
from .audit_rows import Values
from .conversation_rows import ConversationReleased, ConversationUpdate, SettledConversationCopies
from .daily_usage import DailyUsage
from .node_rows import Suspicion
from .registry_entry_rows import RegistryEntryDeleted, RegistryEntrySaved
from .store_errors import StoreError, write_error
from .store_rows import CallEnd, CallPause, CallRow, CallStart, InputDecided, SessionRow, SettledCalls, StoredCall
from .user_credential_rows import UserCredentialDeleted, UserCredentialRow
from .vendor_file_rows import VendorFileDeleted, VendorFileUploaded


class InterruptedCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that had started and not ended when the previous process ended."""

    session_id: str
    request_key: str
    at: float
    """When the store found it, in Unix seconds."""
    row: CallRow | None
    """Its audit row, as in ``CallStart``; None if it cannot be decoded."""
    result: bytes | None = None
    """The encoded result, if the call had created a detached call; otherwise its outcome is unknown."""


class SessionsSeen(NamedTuple):
    """Commit entry: clients hold these sessions."""

    session_ids: Sequence[str]
    at: float


class ResultsAcknowledged(NamedTuple):
    """Commit entry: a client has the answers to these requests."""

    session_id: str
    request_keys: Sequence[str]


class SessionClosed(NamedTuple):
    """Commit entry: this session cannot be resumed."""

    session_id: str


class LocalResults(NamedTuple):
    """Commit entry: results of local calls, for clients that resume their sessions after a restart."""

    calls: Sequence[StoredCall]


class SyncRequested(NamedTuple):
    """Commit entry: everything committed so far must survive a power cut."""


class RunResumed(NamedTuple):
    """Commit entry: a call continues an earlier run."""

    call_id: str
    run: str


class SessionsReleased(NamedTuple):
    """Commit entry: this node no longer holds these sessions. No effect if only one process uses the database."""

    session_ids: Sequence[str]


class NodeAnnounced(NamedTuple):
    """Commit entry: this node announces its address and details to the other nodes."""

    address: str
    details: str


class NodeDraining(NamedTuple):
    """Commit entry: this node is stopping."""


class NodeLeft(NamedTuple):
    """Commit entry: this node ends, so other nodes may hold its sessions."""


class NodeDeclaredDead(NamedTuple):
    """Commit entry: declare a node dead, if permitted, and settle its calls and sessions."""

    epoch: str
    suspicion: Suspicion


class RetentionDue(NamedTuple):
    """Commit entry: delete expired data."""


class DaemonRestarted(NamedTuple):
    """Commit entry: the daemon starts. Calls without a stored session can be deleted; runs that do not resume end."""


Entry = (
    CallRow
    | SettledCalls
    | CallStart
    | CallEnd
    | InterruptedCall
    | SessionRow
    | SessionsSeen
    | ResultsAcknowledged
    | SessionClosed
    | LocalResults
    | SyncRequested
    | RunResumed
    | CallPause
    | InputDecided
    | DaemonRestarted
    | SessionsReleased
    | NodeAnnounced
    | NodeDraining
    | NodeLeft
    | NodeDeclaredDead
    | RetentionDue
    | ConversationUpdate
    | ConversationReleased
    | SettledConversationCopies
    | A2ATaskRow
    | A2APushRow
    | A2APushDeleted
    | A2APushProgress
    | RegistryEntrySaved
    | RegistryEntryDeleted
    | UserCredentialRow
    | UserCredentialDeleted
    | VendorFileUploaded
    | VendorFileDeleted
)


class CommitItem(msgspec.Struct, eq=False):
    """An entry, the rows made from it for the commit, and the future that awaits it."""

    entry: Entry | None
    """None if there is only an audit row."""
    done: concurrent.futures.Future[bool] | None = None
    row: Values | None = None
    """Its audit row."""
    daily_usage: Sequence[DailyUsage] = ()
    """Its call's contribution to the daily sums."""
    accepted: bool = True
    """The result of ``done`` after the commit; False for a call whose id belongs to an earlier call."""

    def fail(self, reason: str) -> None:
        """Fails the future, if there is one."""
        self.fail_with(write_error(reason))

    def fail_with(self, error: StoreError) -> None:
        """Fails the future, if there is one, with this error."""
        if self.done:
            self.done.set_exception(error)
            self.done = None

    def succeed(self) -> None:
        """Resolves the future, if there is one."""
        if self.done:
            self.done.set_result(self.accepted)

    @property
    def durable(self) -> bool:
        """Whether the entry must survive a power cut, because a tool starts or an answer is sent once it is written."""
        return isinstance(
            self.entry,
            CallStart
            | CallEnd
            | LocalResults
            | RunResumed
            | CallPause
            | InputDecided
            | SyncRequested
            | RegistryEntrySaved
            | RegistryEntryDeleted
            | UserCredentialRow
            | UserCredentialDeleted
            | VendorFileUploaded,
        )


NOT_RETRIED: Final = (
    CallStart
    | LocalResults
    | RunResumed
    | CallPause
    | InputDecided
    | A2ATaskRow
    | A2APushRow
    | A2APushDeleted
    | A2APushProgress
    | RegistryEntrySaved
    | RegistryEntryDeleted
    | UserCredentialRow
    | UserCredentialDeleted
)
"""Entries whose failed writes were reported, so they are not retried."""
