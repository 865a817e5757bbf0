"""The store's record of an agent's run: a summary, and an entry for each child call."""

from typing import Final, Literal

import msgspec

AgentRunState = Literal["running", "paused", "finished", "failed"]
AGENT_RUN_STATES: Final[tuple[AgentRunState, ...]] = ("running", "paused", "finished", "failed")
MAX_LISTED_RUNS: Final = 100
"""The maximum number of runs in one list. Each needs several queries, which block other reads for milliseconds."""


class AgentRunSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run of an agent. Times are Unix times in seconds."""

    run_id: str
    """The id of the call that began the run."""
    call_id: str
    """The id of the call that continues the run; the same as ``run_id`` unless a pause detached the run."""
    agent: str
    principal: str
    state: AgentRunState
    started_at: float
    ended_at: float | None = None
    """Set only if the run has ended and the audit still has its call."""
    error: str | None = None
    """The error's code, if the run failed."""
    message: str | None = None
    """The error's message, if the audit has it."""
    stopped_by: str | None = None
    """The limit that ended the run early, such as ``max_turns``."""
    turns: int = 0
    """Model turns of all roles, and of the agents that the run called."""
    calls: int = 0
    """Tool calls of the models, including delegations."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = {}
    """The cost by currency. Simulated requests cost nothing."""
    requests: int = 0
    """While paused: the requests without a decision."""


class ChildEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The journal's record of a child call of a run."""

    path: str
    """The names from the run down to this call, such as ``writer/t2.0``."""
    tool: str
    state: Literal["started", "done", "interrupted", "expired"]
    """``expired``: the call ended, and its result is no longer stored."""
    started_at: float
    result_bytes: int
    error: str | None = None
    """The error's code, if the result is stored."""
    result: bytes | None = None
    """The encoded result, if it is stored and was requested."""


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its child calls."""

    summary: AgentRunSummary
    entries: tuple[ChildEntry, ...]
    """The child calls in the order in which they started."""
