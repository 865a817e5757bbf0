"""A conversation as a tool sees it: turns that calls of any tool, to any model, can go on with."""

from collections.abc import Sequence
from typing import Final, Literal, Protocol

import msgspec

from ..protocol.tool_call import Json

MAX_STATE_BYTES: Final = 1024 * 1024
"""Of a conversation's ``state``, as JSON: findings of some thousand steps."""


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one side said. ``text`` is what a model is told of it later."""

    role: Literal["user", "assistant"]
    text: str
    tool: str = ""
    """Which tool it was said to, or by."""
    model: str | None = None
    """Which model answered; on turns of ``assistant``."""
    files: tuple[str, ...] = ()
    """Names of the files that went with it. What was in them is not kept: who means them gives them again."""
    at: float = 0.0
    """When it was added, in Unix seconds; ``add`` fills it in."""


class Conversation(Protocol):
    """Held by one call at a time: ``async with context.conversation(continuation_id) as conversation``.

    What was added, and ``state`` as it is then, is stored when the block ends without an error; with an error nothing
    is. It holds so many tokens (``conversation_tokens``): past them its oldest turns go.
    """

    id: str
    """What a caller gives as ``continuation_id`` to go on with it."""

    state: Json
    """Any JSON, null at first; of at most ``MAX_STATE_BYTES``. It stays when old turns go.

    Every tool that goes on finds it: a tool keeps an object here, and its own under its name in it.
    """

    @property
    def turns(self) -> Sequence[Turn]:
        """What was said so far, the oldest first, with what this call added."""
        ...

    def add(self, turn: Turn) -> None:
        """Say something more."""
        ...
