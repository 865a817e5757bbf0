"""A conversation as a tool sees it: turns that calls of any tool with any model can continue."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from ..protocol.tool_call import Json

MAX_STATE_BYTES: Final = 1024 * 1024
"""The size of a conversation's ``state`` as JSON: findings of some thousand steps."""


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn. Models see ``text`` later."""

    role: Literal["user", "assistant"]
    text: str
    tool: str = ""
    """The tool that the turn was sent to or came from."""
    model: str | None = None
    """The model that answered; on turns of ``assistant``."""
    files: tuple[str, ...] = ()
    """Names of the files sent with it. Their content is not stored: callers that refer to them send them again."""
    at: float = 0.0
    """The time of its addition, in Unix seconds; set by ``add``."""


class Conversation(Protocol):
    """Locked by one call at a time: ``async with context.conversation(continuation_id) as conversation``.

    If the block ends without an error, added turns and ``state`` are stored; otherwise, nothing is stored. The number
    of tokens
    is limited (``conversation_tokens``): beyond the limit, the oldest turns are deleted.
    """

    id: str
    """The ``continuation_id`` by which callers continue it."""

    state: Json
    """Any JSON, null at first, at most ``MAX_STATE_BYTES``. It remains when old turns are deleted.

    All tools share it: a tool stores an object here, with its data under its own name.
    """

    @property
    def turns(self) -> Sequence[Turn]:
        """The turns so far, oldest first, including those that this call added."""
        ...

    def add(self, turn: Turn) -> None:
        """Append a turn."""
        ...
