"""Runs and jobs, as read from the journal and the audit rows."""

from typing import Any

import msgspec

from ..protocol.tool_call import ModelUsage


class RunUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The usage of one call of a run, without its children."""

    usage: ModelUsage
    """``provider`` and ``model`` are those that answered last."""
    simulated: bool


class JobStep(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A child call of a job."""

    name: str
    state: str
    """``started``, ``done``, ``interrupted`` or ``expired``."""
    started_at: float
    error: str | None
    """The message of its error."""
    fields: dict[str, Any]
    """The data of its result."""


class StoredJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job, with the times in Unix seconds."""

    id: str
    tool: str
    created_at: float
    unfinished: bool
    steps: tuple[JobStep, ...]
    outcome: str | None = None
    """``ok`` or an error code, once it has ended."""
    message: str | None = None
    ended_at: float | None = None
