"""The part that this node has of the calls of a principal that may run at once on all nodes (``max_running``).

Calls that are local take a permit too, so no call asks the database. A node has a share, as long as it uses it: it asks
for more when a call has to wait, and returns what it did not use for a second, or what others want back.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

from ...fairness import Permits
from ...store import NodeLease, SharedLimitsPort, StoreError, boot_time

LOOK_S: Final = 0.25
"""The time between two looks at the shares."""
_KEPT_LOOKS: Final = 4
"""What was not used at so many looks is returned."""


class _Share:
    """The share of one principal. ``permits.limit`` is what this node may use now."""

    def __init__(self, permits: Permits, max_running: int) -> None:
        self.permits = permits
        self.max_running = max_running
        self.held = 0
        """What the database has for this node."""
        self.part = 0
        """What this node should use at most."""
        self.asked = False
        """Another node wants some, or has returned some; or it is not known what the database has."""
        self._wants: deque[int] = deque(maxlen=_KEPT_LOOKS)

    def look(self) -> int:
        """What this node wants."""
        self._wants.append(min(self.max_running, self.permits.in_use + self.permits.waiting))
        return max(self._wants)


def must_ask(*, wants: int, held: int, part: int, in_use: int, asked: bool) -> bool:
    """Whether the database has to be asked: for more, to return some, or because another node asked for it. Pure."""
    return asked or wants != held or (held > part and in_use < held)


class NodeShares:
    """Implements ``RunningShares``. Only for the event loop's thread."""

    def __init__(self, port: SharedLimitsPort, lease: NodeLease) -> None:
        self._port = port
        self._lease = lease
        self._shares: dict[str, _Share] = {}
        self._due = asyncio.Event()

    def __repr__(self) -> str:
        return f"<NodeShares of {len(self._shares)} principals>"

    def divide(self, principal: str, permits: Permits, max_running: int | None) -> None:
        if max_running is None:
            share = self._shares.pop(principal, None)
            permits.on_wait = None
            permits.resize(permits.limit if share is None else share.max_running)
            return
        share = self._shares.get(principal)
        if share is None or share.permits is not permits:
            share = self._shares[principal] = _Share(permits, max_running)
            permits.on_wait = self._due.set
        share.max_running = max_running
        share.asked = True
        self._due.set()

    def wake(self, principal: str) -> None:
        """Another node wants some of the principal's calls, or has returned some."""
        share = self._shares.get(principal)
        if share is not None:
            share.asked = True
            self._due.set()

    async def run(self) -> None:
        """Keeps the shares as this node needs them, until cancelled."""
        while True:
            self._due.clear()
            await self.look()
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._due.wait()

    async def look(self) -> None:
        """Asks for what is missing, and returns what is not used."""
        if not self._lease.good(boot_time()):
            # Other nodes may have declared this one dead, and use its share.
            for share in self._shares.values():
                share.permits.resize(0)
                share.asked = True
            return
        await asyncio.gather(*(self._renew(principal, share) for principal, share in self._shares.items()))

    async def _renew(self, principal: str, share: _Share) -> None:
        permits, wants = share.permits, share.look()
        in_use = permits.in_use
        if not must_ask(wants=wants, held=share.held, part=share.part, in_use=in_use, asked=share.asked):
            return
        permits.resize(min(permits.limit, in_use))  # none starts until the database has answered
        share.asked = False
        try:
            answer = await self._port.share_running(principal, max_running=share.max_running, wants=wants, uses=in_use)
        except StoreError:
            share.asked = True  # it may have been done
            return
        if self._shares.get(principal) is share:
            share.held, share.part = answer.held, answer.part
            permits.resize(min(answer.held, answer.part))
