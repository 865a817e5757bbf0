"""What dispatch asks of whoever writes down: the audit and the metrics, and the journal that outlives a crash."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ...protocol.session_calls import PendingResult
from ...protocol.tool_call import Principal, ToolCall, ToolResult
from ...store import CallRow, StoredCall, StoredCallState, StoredDetachedCall, StoredSession
from .running_call import RunningCall, Session


class RecorderPort(Protocol):
    """Where ended calls are written down (audit, metrics). Never blocks."""

    def ended(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None: ...

    def refused(self, session: Session, call: ToolCall, result: ToolResult, *, call_id: str) -> None: ...


class JournalPort(Protocol):
    """What is on the disk before it happens or before it is told, so that a crash loses none of it."""

    @property
    def works(self) -> bool:
        """Whether what is written now reaches the disk, as far as is known."""
        ...

    async def start(self, running: RunningCall) -> bool:
        """Write down that a call starts, within its ``scope``. False: its id was used before, and it must not run.

        Raises:
            ServiceUnavailableError: it cannot be written, so the call must not run.
        """
        ...

    async def end(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None:
        """Write down how a started call ended, and its audit row with it. Never raises; takes some seconds at most."""
        ...

    async def answered(self, running: RunningCall) -> StoredCall | None:
        """How the call ended that its session made under this id before; None where the disk has no end of it.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    async def states(self, session: Session, keys: Sequence[str]) -> Mapping[str, StoredCallState]:
        """What is on the disk of a session's calls that do not run, of each that is. Takes some seconds at most.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    async def child(self, running: RunningCall) -> StoredCall | None:
        """What is on the disk of a child that is about to run, from its run before; None where nothing is.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    async def run(self, call_id: str, principal: Principal, tool: str) -> str | None:
        """The run of a principal's earlier call of this tool; None where it is not known.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    async def take_up(self, running: RunningCall, run: str) -> None:
        """Write down that a call goes on with an earlier run.

        Raises:
            ServiceUnavailableError: it cannot be written.
        """
        ...

    async def detached(self) -> list[StoredDetachedCall]:
        """The detached calls that have started and not ended, the oldest first.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    async def ended(self, call_id: str, child: tuple[str, str], principal: Principal) -> StoredCall | CallRow | None:
        """What is on the disk of a principal's call that does not run: as a child, by its run and name; else what the
        audit has under its id. None where nothing is, or too long ago.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...

    def opened(self, session: Session) -> None:
        """A session that may be resumed. Never blocks."""
        ...

    def forgotten(self, session: Session, keys: Sequence[str]) -> None:
        """The client has these results. Never blocks."""
        ...

    def closed(self, session: Session) -> None:
        """A session that nobody can come back to is over. Never blocks."""
        ...

    def seen(self, sessions: Iterable[Session]) -> None:
        """These sessions live. Never blocks."""
        ...

    async def settled(self) -> None:
        """Return once all that was told without waiting is on the disk, or the disk has refused it.

        Never raises; takes some seconds at most.
        """
        ...

    async def keep(self, answers: Sequence[tuple[Session, PendingResult]]) -> bool:
        """Write down answers of calls that were not journalled, which else live in memory alone.

        False where the disk refused.
        """
        ...

    async def find(self, key_hash: bytes) -> StoredSession | None:
        """What is on the disk of the session of a resume key.

        Raises:
            ServiceUnavailableError: the disk does not say.
        """
        ...
