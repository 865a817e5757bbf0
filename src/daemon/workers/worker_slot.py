"""The data that a supervisor passes to a worker: its number, the shared ports, its directory, and a socket to the
supervisor."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..persistence.state_directory import StateError

SLOT_VARIABLE: Final = "_TOOLD_WORKER"
"""The environment variable by which a process knows that it is a worker. Not a setting: only the supervisor sets it."""
READY: Final = b"r"
"""Sent by a worker that listens."""
RELOADED: Final = b"l"
"""Sent by a worker through which an operator has reloaded the settings."""


class WorkerSlot(msgspec.Struct, frozen=True):
    """One of the workers. ``number`` counts from 0."""

    number: int
    count: int
    name: str
    """Its name in the cluster."""
    port: int
    http_port: int
    directory: str
    """The state directory of the worker."""
    supervisor_fd: int
    """The descriptor of a socket to which the worker writes ``READY`` and ``RELOADED``; it closes when the supervisor
    has ended.
    """
    announces: bool
    """Whether this worker prints the start message for all workers."""

    @property
    def state_dir(self) -> Path:
        return Path(self.directory)


def encode_slot(slot: WorkerSlot) -> str:
    return msgspec.json.encode(slot).decode()


def slot_in(env: Mapping[str, str] = os.environ) -> WorkerSlot | None:
    """The slot that the supervisor gave this process; None if it is not a worker.

    Raises:
        StateError: the variable was not set by a supervisor.
    """
    text = env.get(SLOT_VARIABLE)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=WorkerSlot)
    except msgspec.DecodeError:
        raise StateError(f"{SLOT_VARIABLE} is set, but not by a toold that starts workers; unset it") from None
