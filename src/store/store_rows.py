"""The rows that the store keeps, and the sums over them."""

from typing import Any, Literal

import msgspec

from ..protocol.tool_call import ModelUsage
from .audit_chain import Checkpoint


class CallRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One call as the audit keeps it: who, what, how long, at what price. Written once, when the call has ended.

    Its fields are the columns of the table ``call``.
    """

    id: str
    """The call's id, unique for ever."""
    started_at: float
    """Unix time in seconds."""
    transport: str
    principal: str
    session_id: str
    session_label: str
    client: str
    request_id: str
    """As JSON, so that ``7`` and ``"7"`` stay different."""
    tool: str
    outcome: str
    """``ok``, or the error's code."""
    message: str | None = None
    """The error's message, bounded."""
    executed: str = "yes"
    arguments: Any = None
    """On the way in, the arguments themselves; on the way out what the writer kept of them: their shape, or their
    content where that was asked for."""
    arguments_bytes: int = 0
    result_bytes: int = 0
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
    """A call with its place in the chain."""

    seq: int
    mac: bytes | None
    """None for a row that is older than the chain."""
    call: CallRow


class Sums(msgspec.Struct, kw_only=True):
    """What some calls come to."""

    calls: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = {}
    """Currency (``USD``, ``CNY``) → amount by list price. What the simulator answered costs nothing."""


class ModelSums(Sums, kw_only=True):
    """What the calls of one model come to; real and simulated ones apart."""

    provider: str
    model: str
    simulated: bool


class CallTotals(msgspec.Struct, kw_only=True):
    """The sums of all calls ever recorded here, those included whose rows retention has removed."""

    since: float | None
    """Unix time of the earliest call; None before the first."""
    all: Sums
    by_tool: dict[str, Sums]
    """Calls of tools that do not exist stand under ``unknown``."""
    by_outcome: dict[str, int]
    """``ok`` or an error's code → calls."""
    by_model: list[ModelSums]


class SettledCalls(msgspec.Struct, frozen=True, kw_only=True):
    """What has become of some calls of the outbox, up to one of them."""

    up_to: int
    """The seq of the last of them."""
    at: float
    """When, in Unix seconds."""
    sent: int = 0
    refused: dict[int, str] = {}
    """Seq of a call that was not taken → why."""
    dropped: int = 0
    """Calls that retention removed before they could be sent."""
    checkpoints: tuple[Checkpoint, ...] = ()
    """That were sent, as they were then."""


class AuditOutboxState(msgspec.Struct, frozen=True, kw_only=True):
    """How far the calls have been sent; the numbers count from the first call that ever was."""

    settled_seq: int
    """Up to here nothing is left to send."""
    backlog: int
    """Calls still to send."""
    sent: int
    refused: int
    dropped: int
    last_sent_at: float | None
    """Unix time; None before the first."""


# --- the journal: what outlives a connection, and a crash -------------------------------------------------------------


class SessionRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A session that its client may come back to."""

    id: str
    key_hash: bytes
    """Of its resume key, which itself is nowhere."""
    principal: str
    label: str
    toolset: str
    opened_at: float
    """Unix time in seconds."""


class CallStart(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is written down before a call that is not local starts."""

    session_id: str
    request_key: str
    """``decoding.request_key`` of its request id."""
    echo_id: bool
    """Its answer bears the id under the older name as well."""
    arguments_hash: bytes
    row: CallRow
    """Its audit row, should nobody live to write a better one: without arguments, outcome ``OUTCOME_UNKNOWN``."""
    child: bool = False
    """A call made it: ``session_id`` is its parent's run, ``request_key`` its name there."""
    orchestration: bool = False
    """It makes calls."""
    again: bool = False
    """A child that is known to have been cut off, or is remembered without its result, runs once more."""
    detached: "CallOrder | None" = None
    """Of a call that goes on at the next start, where it has not ended."""


class CallOrder(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a detached call was asked for, by whom, and until when."""

    arguments: bytes
    """JSON, as its caller sent them."""
    client: bytes
    """JSON."""
    deadline_at: float
    """Unix time in seconds."""


class StoredDetachedCall(CallOrder, frozen=True, kw_only=True, gc=False):
    """A detached call that has started and not ended."""

    call_id: str
    request_key: str
    tool: str
    started_at: float
    session: SessionRow


class CallEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a call of the journal ended."""

    session_id: str
    request_key: str
    result: bytes | None
    """The encoded result; None where nobody can come back for it."""
    at: float
    """Unix time in seconds."""
    row: CallRow
    spent: tuple[ModelUsage, ...] = ()
    """What its completions took, by model."""


StoredCallState = Literal["done", "interrupted", "expired"]
"""Of a journalled call: its result is kept, a crash came between, or it is remembered without its result."""


class StoredCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call that has ended, as its session remembers it."""

    session_id: str
    request_key: str
    echo_id: bool
    tool: str
    arguments_hash: bytes
    local: bool
    state: StoredCallState
    result: bytes | None = None
    """The encoded result, where the state is ``done``."""
    at: float
    """When it ended, or was found interrupted, in Unix seconds."""


class StoredSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is found again: its calls in the order in which they ended."""

    row: SessionRow
    calls: list[StoredCall]
    more: bool = False
    """There may be earlier ones."""
