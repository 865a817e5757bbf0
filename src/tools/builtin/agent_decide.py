"""``agent_decide``: a person's decisions on the requests of a paused call."""

from typing import Any, Literal

from pydantic import Field

from ...protocol.input_request import MAX_REQUESTS, InputDecision
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool


class RequestDecision(Arguments):
    """One decision."""

    id: str = Field(min_length=1, max_length=1000, description="The request's id.")
    decision: Literal["approve", "reject", "answer", "provided"]
    arguments: dict[str, Any] | None = Field(
        default=None, description="With approve: all arguments of the call, with your changes. Default: as requested."
    )
    text: str | None = Field(default=None, max_length=100_000, description="The answer, or the reason for a rejection.")


class DecideArguments(Arguments):
    """A paused call, and decisions on its requests."""

    call_id: str = Field(min_length=1, max_length=1000, description="The paused call.")
    decisions: list[RequestDecision] = Field(min_length=1, max_length=MAX_REQUESTS)


@tool("agent_decide", read_only=False, open_world=False, idempotent=True, destructive=True)
async def agent_decide(arguments: DecideArguments, context: LookupContext) -> dict[str, Any]:
    """Decide, for the user, on requests of one of your paused calls, which call_status and activity list: approve or
    reject a tool call, or answer a question. After the last decision the call resumes; use call_status to follow it.
    `open` lists requests without a decision. If one decision is invalid, none is made.
    """
    decisions = [
        (each.id, InputDecision(each.decision, each.arguments, each.text or None)) for each in arguments.decisions
    ]
    still_open = await context.decide(arguments.call_id, decisions)
    decided = [{"id": each.id, "decision": each.decision} for each in arguments.decisions]
    return {"call_id": arguments.call_id, "decided": decided, "open": still_open}
