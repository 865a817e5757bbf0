"""The permit and the reservation of one request to a vendor, where several nodes share the limits.

A daemon that has its limits for itself uses ``ProviderLimiter.permits`` and ``Budget.reserve`` only.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ...protocol.tool_call import Cost
from .budget import Budget


class VendorAdmission(AbstractAsyncContextManager[None], Protocol):
    """``async with admission:`` waits until the request may be sent, and ends when the vendor has answered.

    Entering raises a ``CallError``: a budget refuses the request, or the database does not answer. The permit is
    returned once the block has ended and ``close`` was called, because one statement also books the cost.
    """

    asking: bool
    """Whether it has begun to ask for a permit."""
    tried: asyncio.Event
    """Set once it has a permit or has to wait for one."""

    def spend(self, cost: Cost) -> None:
        """The request costs this."""
        ...

    def close(self) -> None:
        """No cost will be added."""
        ...


class VendorAdmissions(Protocol):
    """The limits that all nodes share."""

    def admission(
        self, provider: str, permits: int, budgets: Sequence[Budget], estimate: Cost | None
    ) -> VendorAdmission:
        """The admission of one request. ``permits``: how many may run at once. ``estimate``: the cost to reserve; None:
        it is refused only if a budget is spent.
        """
        ...
