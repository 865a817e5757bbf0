"""Continues work that takes several calls, even for clients that invent its id or omit it."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from ..protocol.error_codes import InvalidArgumentsError, NotFoundError
from .conversation import Conversation
from .orchestration_context import OrchestrationContext
from .tool_context import ToolContext

_OWN_ID: Final = re.compile(r"[0-9a-f]{32}")
"""The format of the daemon's ids of conversations."""
_ID_OF_CLIENT: Final = (
    "continuation_id is not from an answer, so this began a new piece of work; send the one of this answer from now on."
)
_NO_ID: Final = (
    "A step above 1 came without continuation_id, so it began a new piece of work without the earlier steps; "
    "send the continuation_id of this answer with the next step."
)


@asynccontextmanager
async def continued(continuation_id: str | None, context: ToolContext) -> AsyncIterator[Conversation]:
    """``context.conversation``; an id that the client made up begins a new conversation, with a notice.

    Raises:
        NotFoundError: the conversation has expired or belongs to another principal, or arguments are strict.
        CallError: as raised by ``context.conversation``.
    """
    async with AsyncExitStack() as stack:
        try:
            conversation = await stack.enter_async_context(context.conversation(continuation_id))
        except NotFoundError:
            own_id = continuation_id is not None and _OWN_ID.fullmatch(continuation_id)
            if own_id or not context.accept_former(_ID_OF_CLIENT, each_time=True):
                raise
            conversation = await stack.enter_async_context(context.conversation(None))
        yield conversation


@asynccontextmanager
async def continued_by_run(continuation_id: str | None, context: OrchestrationContext) -> AsyncIterator[Conversation]:
    """The conversation of a call that may pause. If it was deleted while the call was paused, this is a new one,
    because the journal has the data that the call needs.

    Raises:
        CallError: as raised by ``continued``.
    """
    async with AsyncExitStack() as stack:
        try:
            conversation = await stack.enter_async_context(continued(continuation_id, context))
        except NotFoundError:
            if not context.resumed:
                raise
            conversation = await stack.enter_async_context(context.conversation(None))
        yield conversation


def check_continued(number: int, continuation_id: str | None, context: ToolContext) -> None:
    """Gives a notice if a step above 1 does not name the work that it continues.

    Raises:
        InvalidArgumentsError: the step does not name its work, and arguments are strict.
    """
    if number > 1 and continuation_id is None and not context.accept_former(_NO_ID, each_time=True):
        problem = f"step {number} needs the continuation_id of the previous step's answer; without one start at step 1"
        raise InvalidArgumentsError(f"continuation_id: {problem}.", details={"fields": {"continuation_id": problem}})
