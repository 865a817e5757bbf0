"""A phase of a deployment: what it makes, and how it is removed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from .deployment_records import Deployment

CHECK_PHASE: Final = "reserve"
"""The first phase: the name of its child call is this, a colon and the service's name."""


class DeployPhase(msgspec.Struct, frozen=True):
    """One phase. Both functions look first, so they can be called again when it is unknown what they did: each one is
    complete if what it would do is done.

    They raise a ``CallError``; one that is transient is tried again.
    """

    name: str
    make: Callable[[], Awaitable[Mapping[str, Any]]]
    """Returns fields of the job's result, without secrets."""
    remove: Callable[[], Awaitable[str | None]] | None = None
    """Removes what the phase made, and says what that was; None: there was nothing. Without this function, nothing
    remains of the phase."""
    timeout_s: float = 120.0


class DeployTarget(Protocol):
    """Where agents are deployed."""

    def phases(self, deployment: Deployment) -> Sequence[DeployPhase]:
        """The phases after the first, in order."""
        ...
