"""The values that the store takes and returns for tasks of A2A."""

from typing import NamedTuple

import msgspec


class A2AEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a task."""

    number: int
    """Within its task, from 1, ascending."""
    body: bytes
    """JSON that is opaque to the store."""
    partial: bool = False
    """A piece of an answer, which is deleted once the task has ended."""


class A2AMessageRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The message that began a task."""

    key: bytes
    """The hash of its principal, toolset, agent, context and id."""
    content: bytes
    """The hash of its content; a repeated message has the same hash."""


class A2ATaskRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored task of A2A."""

    id: str
    """The id of its detached call."""
    principal: str
    agent: str
    context_id: str
    state: str
    """The last known state, as a state of A2A 1.0."""
    changed_at: float
    """When it entered the state, as a Unix time in seconds."""
    ended: bool
    """Whether the state is final."""
    history: bytes
    """JSON that is opaque to the store. Empty if the query did not read it; ``save`` then keeps the stored history."""
    last_event: int = 0
    """The number of its last event."""
    new_events: tuple[A2AEvent, ...] = ()
    """Events to add; empty in rows that the store returns."""
    message: A2AMessageRow | None = None
    """Its first message, if the task is new; None in rows that the store returns."""
    number: int = 0
    """Set by the store; it increases in the order in which tasks are created."""


class A2ATaskQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the tasks of a principal and agent on a page, newest first."""

    principal: str
    agent: str
    context_id: str | None = None
    state: str | None = None
    changed_after: float | None = None
    """A Unix time: only tasks that entered their state then or later."""
    before: tuple[float, int] | None = None
    """``changed_at`` and ``number`` of the last task of the page before."""
    limit: int
    max_bytes: int
    """The maximum bytes of history on a page; the page ends before a task that would exceed it, but has at least
    one."""
    with_history: bool = True
    """Whether to read the history; otherwise it is empty."""


class A2ATaskPage(NamedTuple):
    """One page of a principal's tasks."""

    rows: list[A2ATaskRow]
    total: int
    """The number of tasks on all pages."""
    more: bool
    """Whether there is a further page."""


class A2AEarlier(NamedTuple):
    """The stored data about a message that arrives."""

    task_id: str | None
    """The task that the message began; None if the message is new."""
    content: bytes
    """As in ``A2AMessageRow``; empty if the message is new."""
    conversation: bool
    """Whether the conversation exists and belongs to the message's principal."""
