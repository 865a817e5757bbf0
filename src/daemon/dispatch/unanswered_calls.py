"""The calls without an answer, and the number of answers that are still being sent."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

from .running_call import CallPort, RunningCall, Session


class UnansweredCalls:
    """The accepted calls of the daemon, from their start to their answer."""

    def __init__(self) -> None:
        # Calls of clients and detached calls, by session and request key.
        self._calls: dict[tuple[str, str], RunningCall] = {}
        # The orchestration calls among them.
        self._orchestrations: set[RunningCall] = set()
        # Child calls, the oldest first; they are in no session's ``SessionCalls``.
        self._child_calls: dict[RunningCall, None] = {}
        # Answers still being sent. Their request ids may be in use again.
        self._undelivered = 0
        self._idle = asyncio.Event()
        self._idle.set()

    def __repr__(self) -> str:
        return f"<UnansweredCalls {len(self._calls)} children={len(self._child_calls)} sending={self._undelivered}>"

    def __len__(self) -> int:
        """The number of calls whose answer has not been sent; children do not count."""
        return len(self._calls) + self._undelivered

    @property
    def all(self) -> list[RunningCall]:
        """First the calls of clients and detached calls, the oldest first, then children."""
        return [call for call in (*self._calls.values(), *self._child_calls) if not call.answered]

    @property
    def permit_users(self) -> int:
        """The number of calls that hold a run permit or wait for one; children do not count."""
        return len(self._calls) - len(self._orchestrations)

    @property
    def permits_of_children(self) -> int:
        """The number of run permits that child calls hold."""
        return sum(child.permit.held for child in self._child_calls)

    def waiting_of(self, principal: str) -> int:
        """The number of a principal's calls that wait for a run permit or a provider; children do not count."""
        return sum(
            not call.permit.held and call.child_scope is None and call.session.principal.name == principal
            for call in self._calls.values()
        )

    def orchestrations_of(self, session: Session) -> int:
        """The number of running orchestration calls of a session; children do not count."""
        return sum(call.session is session for call in self._orchestrations)

    def find(self, session: Session, key: str) -> RunningCall | None:
        """A session's call with this request key."""
        call = self._calls.get((session.id, key))
        return None if call is None or call.answered else call

    def of_session(self, session: Session) -> list[RunningCall]:
        """A session's calls, including those whose answer is about to be recorded."""
        calls = (self._calls.get((session.id, key)) for key in session.calls.running)
        return [call for call in calls if call is not None]

    def by_port(self) -> Mapping[CallPort, Sequence[RunningCall]]:
        """The calls of clients and detached calls, grouped by the port of their answers."""
        ports: dict[CallPort, list[RunningCall]] = {}
        for call in self._calls.values():
            if not call.answered:
                ports.setdefault(call.port, []).append(call)
        return ports

    def add(self, call: RunningCall) -> None:
        """Add a call that is about to start."""
        if call.parent is not None and (parent_scope := call.parent_scope) is not None:
            parent_scope.active.add(call)
            self._child_calls[call] = None
        else:
            self._calls[call.session.id, call.key] = call
            if call.child_scope is not None:
                self._orchestrations.add(call)
        if len(self._calls) + len(self._child_calls) == 1:
            self._idle.clear()

    def remove(self, call: RunningCall) -> None:
        """Remove a call that has its answer. Unless it is a child, ``delivered`` follows."""
        if call.parent is not None and (parent_scope := call.parent_scope) is not None:
            parent_scope.child_answered(call)
            del self._child_calls[call]
        else:
            del self._calls[call.session.id, call.key]
            if call.child_scope is not None:
                self._orchestrations.discard(call)
            self._undelivered += 1
        if not self._calls and not self._child_calls:
            self._idle.set()

    def delivered(self) -> None:
        """Report that the answer of a removed call was sent, or has no receiver."""
        self._undelivered -= 1

    async def wait_idle(self, timeout_s: float) -> None:
        """Wait until all calls are answered, but not until clients have read the answers; at most ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
