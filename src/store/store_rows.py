"""The rows of the store, and the sums over them."""

import hashlib
from typing import Any, Literal

import msgspec

from ..protocol.input_request import InputDecision, InputRequest
from ..protocol.tool_call import ModelUsage
from .a2a_task_rows import A2ATaskRow
from .audit_chain import Checkpoint


class CallRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The audit row of one call: caller, tool, duration, cost. Written once, when the call has ended.

    Its fields are the columns of the table ``call``.
    """

    id: str
    """The call id, unique across sessions and restarts."""
    started_at: float
    """Unix time in seconds."""
    transport: str
    principal: str
    session_id: str
    session_label: str
    client: str
    request_id: str
    """As JSON, so that ``7`` and ``"7"`` differ."""
    tool: str
    outcome: str
    """``ok``, or the error's code."""
    message: str | None = None
    """The error's message, or why another model answered than the requested one; bounded."""
    executed: str = "yes"
    arguments: Any = None
    """The arguments, until the row is written. The database has only their shape or, if ``audit_content = full``, their
    redacted content."""
    arguments_bytes: int = 0
    result_bytes: int = 0
    """The size of the answer; for a child call that was not journalled, the size of its text."""
    latency_ms: float
    queue_ms: float = 0.0
    tool_ms: float = 0.0
    provider_ms: float = 0.0
    provider: str | None = None
    model: str | None = None
    simulated: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    cost_amount: float | None = None
    cost_currency: str | None = None


class ChainedRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call with its position in the audit chain."""

    seq: int
    mac: bytes | None
    """None if the row is older than the chain."""
    chain: int = 0
    """The number of the chain; 0 unless several nodes share the database."""
    call: CallRow


class Sums(msgspec.Struct, kw_only=True):
    """Sums over some calls."""

    calls: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = {}
    """Currency (``USD``, ``CNY``) → amount by list price. Simulated calls cost nothing."""


class ModelSums(Sums, kw_only=True):
    """Sums over the calls of one model; real and simulated calls are separate."""

    provider: str
    model: str
    simulated: bool


class CallTotals(msgspec.Struct, kw_only=True):
    """Sums over all calls ever recorded, including those whose rows retention has removed."""

    since: float | None
    """Unix time of the earliest call; None before the first."""
    all: Sums
    by_tool: dict[str, Sums]
    """Calls of tools that do not exist are under ``unknown``."""
    by_outcome: dict[str, int]
    """``ok`` or an error's code → calls."""
    by_model: list[ModelSums]


class SettledCalls(msgspec.Struct, frozen=True, kw_only=True):
    """The settled calls of the outbox: those that were sent, refused or dropped."""

    up_to: int
    """The seq of the last settled call; all before it are settled too."""
    at: float
    """Unix time in seconds."""
    sent: int = 0
    refused: dict[int, str] = {}
    """Seq of a refused call → reason."""
    dropped: int = 0
    """Calls that retention removed before they were sent."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """The checkpoints that were sent, with the values that were sent."""


class AuditOutboxState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the outbox of audit rows; the counts cover all calls ever recorded."""

    settled_seq: int
    """All calls up to this seq are settled."""
    backlog: int
    """Unsent calls."""
    sent: int
    refused: int
    dropped: int
    last_sent_at: float | None
    """Unix time; None before the first."""


# --- the journal ------------------------------------------------------------------------------------------------------


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session that its client can resume."""

    id: str
    key_hash: bytes
    """The hash of its resume key, which itself is not stored."""
    principal: str
    label: str
    toolset: str
    opened_at: float
    """Unix time in seconds."""
    former: bool = False
    """Whether one of its calls used an argument name of an earlier server."""


class CallStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The journal entry of a call that is about to start."""

    session_id: str
    request_key: str
    """``frame_decoding.request_key`` of its request id."""
    echo_id: bool
    """Whether its answer also has the request id under the older name ``id``."""
    arguments_hash: bytes
    row: CallRow
    """Its audit row in case the daemon ends abruptly: without arguments, outcome ``OUTCOME_UNKNOWN``."""
    child: bool = False
    """Whether it is a child call: ``session_id`` then identifies its parent's run, and ``request_key`` is its name
    there.
    """
    orchestration: bool = False
    """Whether it is a call of an orchestration tool."""
    replace: bool = False
    """Whether it replaces the entry of an earlier attempt of this child call that was interrupted or whose result has
    expired. A call of an orchestration tool also replaces the entry of a completed attempt; the entries of its children
    stay.
    """
    detached: "DetachedRequest | None" = None
    """The request of a detached call, which resumes at the next start if it has not ended."""
    pause: "CallPause | None" = None
    """Set if this detached call begins paused."""
    task: A2ATaskRow | None = None
    """The A2A task of this detached call."""


class DetachedRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The arguments, client and deadline of a detached call."""

    arguments: bytes
    """JSON, as the caller sent them."""
    client: bytes
    """JSON."""
    deadline_at: float
    """Unix time in seconds."""
    creator: str | None = None
    """The id of the call that created it, or the key of its run if that was a child call."""
    run: str | None = None
    """The earlier run that the call continues; None: it has its own run."""
    traceparent: str | None = None
    """The span of the call that created it (``protocol/trace_context.py``)."""


class CallPause(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A detached call pauses, until its requests are decided."""

    call_id: str
    requests: tuple[InputRequest, ...]
    expires_at: float
    """When open requests expire: Unix time in seconds."""
    drops_at: float
    """When the run is dropped, unless an earlier pause set that: Unix time in seconds."""
    remaining_s: float
    """How long it may run after the last decision."""


class InputDecided(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A decision on an open request of a paused call."""

    call_id: str
    request_id: str
    decision: InputDecision
    at: float
    """Unix time in seconds."""
    row: CallRow
    """The audit row of the decision."""


def decision_hash(decision: InputDecision) -> bytes:
    """Returns the hash by which a repeated decision is recognized once its call has ended."""
    return hashlib.blake2b(msgspec.json.encode(decision, order="deterministic"), digest_size=16).digest()


class StoredRequest(msgspec.Struct, frozen=True, gc=False):
    """A request of a call that has not ended; its decision is None while it is open."""

    request: InputRequest
    decision: InputDecision | None


class StoredDetachedCall(DetachedRequest, frozen=True, kw_only=True, gc=False):
    """A detached call that has started and not ended."""

    call_id: str
    request_key: str
    tool: str
    started_at: float
    session: SessionRow
    requests: tuple[StoredRequest, ...] = ()
    """The requests of all its pauses."""
    expires_at: float | None = None
    """While it is paused: when its open requests expire, as a Unix time."""
    drops_at: float | None = None
    """Since its first pause: when its run is dropped, as a Unix time."""
    dropped: bool = False
    """Whether some results of its run were deleted, because the principal's unfinished runs exceeded their limit."""


class CallEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The end of a journalled call."""

    session_id: str
    request_key: str
    result: bytes | None
    """The encoded result; None if its session cannot be resumed."""
    at: float
    """Unix time in seconds."""
    row: CallRow
    usage_by_model: tuple[ModelUsage, ...] = ()
    """The usage of its completions, by model."""
    agent: str = ""
    """The outermost agent among the call and its parents; empty if none."""
    unstarted: "UnstartedCall | None" = None
    """Set if the call ended before its tool started. The journal may then have no ``CallStart`` for it."""
    run: str | None = None
    """The run that ends with this call, so that the results of its children expire from now on."""
    stopped_by: str | None = None
    """Only for the run of an agent: the limit that ended the run early; empty if none."""


class UnstartedCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The fields of ``CallStart`` that are stored for a call that ended before its tool started."""

    echo_id: bool
    arguments_hash: bytes


StoredCallState = Literal["done", "interrupted", "expired"]
"""``done``: its result is stored. ``interrupted``: the daemon ended while it ran. ``expired``: its result is
deleted."""


class StoredCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored call that has ended."""

    session_id: str
    request_key: str
    echo_id: bool
    tool: str
    arguments_hash: bytes
    local: bool
    started: bool = True
    """False if it ended before its tool started."""
    state: StoredCallState
    result: bytes | None = None
    """The encoded result, if the state is ``done``."""
    at: float
    """When it ended, or was found interrupted, in Unix seconds."""

    def expired_before(self, results_since: float) -> "StoredCall":
        """The call, expired if it ended before ``results_since`` (Unix seconds)."""
        return msgspec.structs.replace(self, state="expired", result=None) if self.at < results_since else self


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A stored session, with its calls in the order in which they ended."""

    row: SessionRow
    calls: list[StoredCall]
    more: bool = False
    """There may be earlier calls."""
