"""What a message does while an earlier message of its conversation is being answered."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...protocol.error_codes import OverCapacityError
from ..orchestration_context import OrchestrationContext
from .agent_definition import Agent


class BusyConversations:
    """The calls of agents that answer in a conversation at present."""

    def __init__(self) -> None:
        # By principal and conversation: the ids of the calls, oldest first.
        self._calls: dict[tuple[str, str], list[str]] = {}

    @asynccontextmanager
    async def entered(
        self, agent: Agent, continuation_id: str | None, context: OrchestrationContext
    ) -> AsyncIterator[None]:
        """Enters the conversation by the agent's ``on_busy``. The conversation's lock makes the calls wait.

        Raises:
            OverCapacityError: another call answers, and ``on_busy`` is ``reject``.
        """
        if continuation_id is None:
            yield
            return
        key = (context.principal.name, continuation_id)
        calls = self._calls.setdefault(key, [])
        if calls and agent.on_busy == "reject":
            message = f"{agent.name} is answering an earlier message of this conversation, in call {calls[0]}; "
            raise OverCapacityError.content_free(f"{message}send this one when that call has ended.")
        replaced = tuple(calls) if agent.on_busy == "replace" else ()
        calls.append(context.call_id)
        try:
            for earlier in replaced:
                await context.cancel_call(earlier)
            yield
        finally:
            calls.remove(context.call_id)
            if not calls:
                del self._calls[key]
