"""The rows that the store keeps."""

from typing import Any

import msgspec


class CallRow(msgspec.Struct, frozen=True, kw_only=True):
    """One call as the audit keeps it: who, what, how long, at what price. Written once, when the call has ended."""

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
    """The arguments themselves; the writer keeps their shape, and their content only where that is asked for."""
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
