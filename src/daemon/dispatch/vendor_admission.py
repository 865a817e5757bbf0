"""The permit and the reservation of one request to a vendor, if several nodes share the limits.

A daemon that shares no limits uses only ``ProviderLimiter.permits`` and ``Budget.reserve``.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from ...protocol.tool_call import Cost
from .budget import Budget


class VendorAdmission(AbstractAsyncContextManager[None], Protocol):
    """Entering ``async with admission:`` waits until the request may be sent; the block ends when the vendor has
    answered.

    Entering raises a ``CallError`` if a budget refuses the request or the database does not answer. The permit is
    released once the block has ended and ``close`` was called, because the same statement records the cost.
    """

    asking: bool
    """Whether it has started to ask for a permit."""
    tried: asyncio.Event
    """Set once it has a permit or must wait for one."""

    def spend(self, cost: Cost) -> None:
        """Adds a cost of the request."""
        ...

    def close(self) -> None:
        """Reports that no further cost will be added."""
        ...


class VendorAdmissions(Protocol):
    """The limits that all nodes share."""

    def admission(
        self, provider: str, permits: int, budgets: Sequence[Budget], estimate: Cost | None
    ) -> VendorAdmission:
        """The admission of one request. ``permits`` is the number of requests that may run at once, ``estimate`` the
        cost to reserve. With an estimate of None, the request is refused only if a budget is spent.
        """
        ...
