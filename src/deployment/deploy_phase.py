"""A phase of a deployment: a function that creates something, and one that removes it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from .deployment_records import Deployment

CHECK_PHASE: Final = "reserve"
"""The first phase. The name of its child call is this text, a colon and the service's name."""


class DeployPhase(msgspec.Struct, frozen=True):
    """One phase. Both functions first check what exists, so they can be called again when their outcome is unknown, and
    do nothing if their work is done.

    They raise a ``CallError``. After a transient one, they are tried again.
    """

    name: str
    make: Callable[[], Awaitable[Mapping[str, Any]]]
    """Creates what the phase is for; returns fields of the job's result, without secrets."""
    remove: Callable[[], Awaitable[str | None]] | None = None
    """Removes what the phase created; returns its description, or None if there was nothing. None instead of a function
    if nothing remains of the phase.
    """
    timeout_s: float = 120.0


class DeployTarget(Protocol):
    """A system to which agents are deployed."""

    def phases(self, deployment: Deployment) -> Sequence[DeployPhase]:
        """The phases after the first, in order."""
        ...
