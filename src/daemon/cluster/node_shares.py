"""This node's shares of the permits of principals whose ``max_running`` applies to all nodes together.

Local calls take such a permit, too, so a call must not wait for the database. Instead, each node has a share of the
permits. It asks for more when a call has to wait, and releases permits that it has not used for a second or that other
nodes want.
"""

import asyncio
from collections import deque
from contextlib import suppress
from typing import Final

from ...fairness import Permits
from ...store import NodeLease, SharedLimitsPort, StoreError, boot_time

ADJUST_INTERVAL_S: Final = 0.25
"""The time between two checks of the shares."""
_UNUSED_CHECKS: Final = 4
"""Permits that were unused at this number of checks are released."""


class _Share:
    """The share of one principal. ``permits.limit`` is the number of permits that this node may use now."""

    def __init__(self, permits: Permits, max_running: int) -> None:
        self.permits = permits
        self.max_running = max_running
        self.held = 0
        """The permits that the database has assigned to this node."""
        self.part = 0
        """The maximum number of permits that this node should use."""
        self.asked = False
        """Whether to ask the database: another node wants or has released permits, or the assigned number is
        unknown."""
        self._wants: deque[int] = deque(maxlen=_UNUSED_CHECKS)

    def wanted(self) -> int:
        """The number of permits that this node wants."""
        self._wants.append(min(self.max_running, self.permits.in_use + self.permits.waiting))
        return max(self._wants)


def must_ask(*, wants: int, held: int, part: int, in_use: int, asked: bool) -> bool:
    """Whether to ask the database: for more permits, to release some, or because another node requested it. Pure."""
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
        """Reports that another node wants permits of the principal, or has released some."""
        share = self._shares.get(principal)
        if share is not None:
            share.asked = True
            self._due.set()

    async def run(self) -> None:
        """Until cancelled: adjusts the shares to the needs of this node."""
        while True:
            self._due.clear()
            await self.adjust()
            with suppress(TimeoutError):
                async with asyncio.timeout(ADJUST_INTERVAL_S):
                    await self._due.wait()

    async def adjust(self) -> None:
        """Asks for missing permits, and releases unused ones."""
        if not self._lease.good(boot_time()):
            # Other nodes may have declared this one dead, and use its share.
            for share in self._shares.values():
                share.permits.resize(0)
                share.asked = True
            return
        await asyncio.gather(*(self._renew(principal, share) for principal, share in self._shares.items()))

    async def _renew(self, principal: str, share: _Share) -> None:
        permits, wants = share.permits, share.wanted()
        in_use = permits.in_use
        if not must_ask(wants=wants, held=share.held, part=share.part, in_use=in_use, asked=share.asked):
            return
        permits.resize(min(permits.limit, in_use))  # so that no further call starts before the database answers
        share.asked = False
        try:
            answer = await self._port.share_running(principal, max_running=share.max_running, wants=wants, uses=in_use)
        except StoreError:
            share.asked = True  # the statement may have been executed
            return
        if self._shares.get(principal) is share:
            share.held, share.part = answer.held, answer.part
            permits.resize(min(answer.held, answer.part))
