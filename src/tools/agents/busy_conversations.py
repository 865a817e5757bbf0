"""Decides about a message that arrives while an earlier message of its conversation is being answered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...protocol.error_codes import OverCapacityError
from ..orchestration_context import OrchestrationContext
from .agent_definition import Agent


class BusyConversations:
    """The calls of agents that are answering in a conversation."""

    def __init__(self) -> None:
        # The ids of the calls, oldest first, by principal and conversation.
        self._calls: dict[tuple[str, str], list[str]] = {}

    @asynccontextmanager
    async def entered(
        self, agent: Agent, continuation_id: str | None, context: OrchestrationContext
    ) -> AsyncIterator[None]:
        """Enters the conversation according to the agent's ``on_busy``. The conversation's lock makes calls wait.

        A run that continues after a pause or a restart always waits, because its message is older than the current one.

        Raises:
            OverCapacityError: another call is answering, and ``on_busy`` is ``reject``.
        """
        if continuation_id is None:
            yield
            return
        key = (context.principal.name, continuation_id)
        calls = self._calls.setdefault(key, [])
        on_busy = "wait" if context.resumed else agent.on_busy
        if calls and on_busy == "reject":
            message = f"{agent.name} is answering an earlier message of this conversation, in call {calls[0]}; "
            raise OverCapacityError.content_free(f"{message}send this one when that call has ended.")
        replaced = tuple(calls) if on_busy == "replace" else ()
        calls.append(context.call_id)
        try:
            for earlier in replaced:
                await context.cancel_call(earlier)
            yield
        finally:
            calls.remove(context.call_id)
            if not calls:
                del self._calls[key]
