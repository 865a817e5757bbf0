"""The values that the store takes and returns for conversations and their copies."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec


class NewCopy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message that a call added to a conversation."""

    number: int
    """The number of its turn."""
    role: str
    content: dict[str, Any]
    """JSON."""
    at: float
    """Unix time in seconds."""
    provider: str | None = None
    model: str | None = None


class ConversationCopy(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A message of a conversation, or the fact that the conversation has ended, to be sent to Supabase.

    Its fields are the columns of the table ``copy``.
    """

    number: int
    """Its position among all copies."""
    id: str
    """The message's id, the same in each attempt to send it; the conversation's id if the conversation has ended."""
    conversation_id: str
    principal: str
    session_id: str | None
    started_at: float
    """When the conversation began, in Unix seconds."""
    at: float
    """When the message was added; for the end of a conversation, when its last message was added."""
    ended_at: float | None
    """When the conversation was deleted. The fields below are None then."""
    position: int | None
    """``NewCopy.number``."""
    call_id: str | None
    role: str | None
    provider: str | None
    model: str | None
    content: Any
    """``NewCopy.content``."""


class SettledConversationCopies(msgspec.Struct, frozen=True, kw_only=True):
    """Commit entry: which copies were sent or refused, by their numbers."""

    at: float
    """Unix time in seconds."""
    sent: Sequence[int] = ()
    refused: dict[int, str] = {}
    """Number of a refused copy → reason."""


class ConversationOutboxState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the outbox of copies; the counts cover all copies ever made."""

    backlog: int
    """Unsent copies."""
    sent: int
    refused: int
    dropped: int
    """The number of copies that retention deleted before they were sent."""
    last_sent_at: float | None
    """A Unix time; None before the first copy was sent."""


class StoredTurn(msgspec.Struct, frozen=True, gc=False):
    """One stored turn. ``body`` is JSON that is opaque to the store."""

    number: int
    """Its position in the conversation, from 1, without gaps."""
    tokens: int
    body: str


class StoredConversation(msgspec.Struct, frozen=True, kw_only=True):
    """A stored conversation."""

    id: str
    principal: str
    state: str
    """JSON."""
    last_number: int
    """The number of its last turn; 0 before the first."""
    turns: list[StoredTurn]
    """In order. The oldest may have been deleted."""


class ConversationUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """A call's changes to a new or existing conversation."""

    id: str
    principal: str
    at: float
    """Unix time in seconds."""
    state: str
    """JSON; replaces the earlier state."""
    bytes: int
    """The size of the state and of all its stored turns."""
    first_number: int
    """Turns before this number are deleted."""
    last_number: int
    """The number of its last turn."""
    turns: list[StoredTurn]
    """The new turns."""
    session_id: str
    call_id: str
    """The call that added the turns."""
    copies: Sequence[NewCopy] = ()
    """The messages to copy to Supabase; also those that are too long to be stored as turns."""


class ConversationReleased(NamedTuple):
    """Commit entry: this node no longer uses the conversation."""

    id: str


class ConversationHeldError(Exception):
    """A call on another node uses the conversation. ``holder``: the epoch of that node."""

    def __init__(self, holder: str) -> None:
        super().__init__(holder)
        self.holder = holder
