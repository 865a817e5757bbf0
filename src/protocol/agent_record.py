"""What the store has about a run of an agent: a summary, and an entry for each of its child calls."""

from typing import Final, Literal

import msgspec

AgentRunState = Literal["running", "paused", "finished", "failed"]
AGENT_RUN_STATES: Final[tuple[AgentRunState, ...]] = ("running", "paused", "finished", "failed")
MAX_LISTED_RUNS: Final = 100
"""The runs that one list has at most. Each needs several queries, which block other reads for some milliseconds."""


class AgentRunSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of an agent. Times are Unix times in seconds."""

    run_id: str
    """The id of the call that began it."""
    call_id: str
    """The call that continues it; the same as ``run_id`` unless the run was detached by a pause."""
    agent: str
    principal: str
    state: AgentRunState
    started_at: float
    ended_at: float | None = None
    """Set only if the run has ended and the audit still has its call."""
    error: str | None = None
    """The code of its error, if it failed."""
    message: str | None = None
    """The error's message, as far as the audit has it."""
    stopped_by: str | None = None
    """The limit that ended it before it was done, such as ``max_turns``."""
    turns: int = 0
    """Model turns of all its roles, and of the agents that it called."""
    calls: int = 0
    """Tool calls that its models made, delegations included."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = {}
    """Money by currency. Simulated requests cost nothing."""
    requests: int = 0
    """While paused: the requests without a decision."""


class ChildEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A child call of a run, as the journal has it."""

    path: str
    """The names from the run down to this call, such as ``writer/t2.0``."""
    tool: str
    state: Literal["started", "done", "interrupted", "expired"]
    """``expired``: it ended, and its result is no longer stored."""
    started_at: float
    result_bytes: int
    error: str | None = None
    """The code of its error, if its result is kept."""
    result: bytes | None = None
    """The encoded result, if it is kept and was asked for."""


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its child calls."""

    summary: AgentRunSummary
    entries: tuple[ChildEntry, ...]
    """In the order in which they started."""
