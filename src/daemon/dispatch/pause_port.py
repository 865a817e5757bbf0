"""The port through which dispatch stores paused calls, their requests and the decisions on them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ...protocol.error_codes import CallError
from ...protocol.input_request import InputDecision
from ...protocol.tool_call import Principal
from ...store import CallPause, StoredDetachedCall
from .running_call import RunningCall


class PausePort(Protocol):
    """The durable record of paused calls. Each method raises ServiceUnavailableError if the database cannot be read or
    written.
    """

    async def start_paused(self, call: RunningCall, pause: CallPause) -> None:
        """Persists a detached call that begins paused."""
        ...

    async def pause(self, pause: CallPause) -> None:
        """Persists that a running detached call pauses."""
        ...

    async def find(self, call_id: str, principal: Principal | None) -> StoredDetachedCall | None:
        """Returns a detached call that has not ended, paused or not; if a principal is given, only its own."""
        ...

    async def paused_calls(self, principal: Principal | None) -> list[StoredDetachedCall]:
        """Returns the oldest 100 paused calls of a principal, or of all principals."""
        ...

    async def count(self, principal: Principal) -> int:
        """Returns the number of a principal's paused calls."""
        ...

    async def paused_on(self, run: str) -> str | None:
        """Returns the id of the paused call that continues this run."""
        ...

    async def due(self) -> list[StoredDetachedCall]:
        """Returns the paused calls whose requests have expired, or whose run has been dropped."""
        ...

    async def waiting_for_credentials(self) -> list[StoredDetachedCall]:
        """Returns the paused calls of all principals that may wait for a credential."""
        ...

    async def next_expiry_s(self) -> float | None:
        """Returns the seconds until the next requests expire; None if no call is paused."""
        ...

    async def decision_hashes(self, call_id: str, principal: Principal) -> Mapping[str, bytes]:
        """Returns the decided requests of a principal's call, even one that has ended: id and ``decision_hash``."""
        ...

    async def decide(
        self, stored: StoredDetachedCall, decisions: Sequence[tuple[str, InputDecision]], by: RunningCall | None
    ) -> None:
        """Persists decisions on open requests, each with an audit row. ``by`` is the call that made them; None if the
        requests expired or the credential was given.
        """
        ...

    async def adopt(self, call_id: str) -> bool:
        """Assigns a call whose requests are decided to this process, which then continues it. Returns False if another
        node of the cluster was faster.
        """
        ...

    async def end(self, stored: StoredDetachedCall, error: CallError) -> None:
        """Persists that a paused call ends with an error."""
        ...
