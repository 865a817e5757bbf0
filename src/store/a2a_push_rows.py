"""The values that the store takes and returns for A2A's push notifications."""

from typing import NamedTuple


class A2APushRow(NamedTuple):
    """One push configuration, and the progress of its notifications."""

    task: str
    id: str
    url: str
    version: str
    """The version of A2A in which notifications are written."""
    secrets: bytes
    """Opaque to the store."""
    sent: int
    """The number of the last event that was delivered or skipped."""
    attempts: int = 0
    """Failed attempts for the next event."""
    next_at: float = 0.0
    """When the next attempt may be made, as a Unix time in seconds."""


class A2APushDeleted(NamedTuple):
    """Commit entry: a configuration was deleted."""

    task: str
    id: str


class A2APushProgress(NamedTuple):
    """Commit entry: an event was delivered, or an attempt failed. No effect if the configuration has been deleted."""

    task: str
    id: str
    sent: int
    attempts: int
    next_at: float
