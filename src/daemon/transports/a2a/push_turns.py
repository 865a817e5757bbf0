"""Decides which notification is sent next: principals take turns, and each of them and each host has a limit. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ....fairness import FairQueue
from ....store import A2APushRow
from .push_address import stored_host

MAX_SENDING: Final = 8
"""Notifications that are sent concurrently; further ones wait."""
MAX_SENDING_OF_PRINCIPAL: Final = 2
"""Concurrent notifications of one principal, so that addresses that do not answer delay only this principal."""
MAX_SENDING_TO_HOST: Final = 4
"""Concurrent notifications to one host: more than one principal may have, so none can block a shared host."""

PendingPush = tuple[A2APushRow, str, str]
"""A configuration with events to send, its principal and its agent."""


class _Turn(NamedTuple):
    principal: str
    host: str


class PushTurns:
    """The notifications that are being sent, and the order of the next ones."""

    def __init__(self) -> None:
        self._sending: dict[tuple[str, str], _Turn] = {}
        self._last: dict[str, None] = {}
        """The principals that had a turn and still have events to send, the most recent last."""

    def take(self, due: Iterable[PendingPush]) -> Iterator[PendingPush]:
        """Yields the configurations whose events to send now; each counts until ``end``."""
        waiting = [push for push in due if (push[0].task, push[0].id) not in self._sending]
        places = {principal: place for place, principal in enumerate(self._last, 1)}
        queue: FairQueue[PendingPush] = FairQueue()
        for push in sorted(waiting, key=lambda push: places.get(push[1], 0)):
            queue.push(push[1], "", push)
        names = {push[1] for push in waiting}
        self._last = {principal: None for principal in self._last if principal in names}
        held: dict[str, int] = {}
        hosts: dict[str, int] = {}
        for turn in self._sending.values():
            held[turn.principal] = held.get(turn.principal, 0) + 1
            hosts[turn.host] = hosts.get(turn.host, 0) + 1
        while len(self._sending) < MAX_SENDING:
            served = queue.pop(held, newcomers_only=False)
            if served is None or held.get(served[0], 0) >= MAX_SENDING_OF_PRINCIPAL:
                return  # if the principal with the fewest has reached its limit, all others have, too
            principal, push = served
            row = push[0]
            host = stored_host(row.url)
            if hosts.get(host, 0) >= MAX_SENDING_TO_HOST:
                continue
            held[principal] = held.get(principal, 0) + 1
            hosts[host] = hosts.get(host, 0) + 1
            self._last.pop(principal, None)
            self._last[principal] = None
            self._sending[row.task, row.id] = _Turn(principal, host)
            yield push

    def end(self, row: A2APushRow) -> None:
        """Reports that the notification is no longer being sent."""
        del self._sending[row.task, row.id]
