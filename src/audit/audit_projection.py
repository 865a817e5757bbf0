"""From a call that has ended to its audit row. Pure: the caller brings the clock and the ids."""

from typing import Final

import msgspec

from ..protocol.error_codes import ErrorCode
from ..protocol.tool_call import ClientInfo, Principal, ToolCall, ToolResult
from ..store import CallRow
from .redaction import redact_text

MAX_NAME_CHARS: Final = 128
"""Of a tool's, a client's and a model's name: callers choose the first two."""
MAX_MESSAGE_CHARS: Final = 500

QUOTES_ITS_CALLER: Final = frozenset(
    {ErrorCode.VALIDATION_ERROR, ErrorCode.INVALID_REQUEST, ErrorCode.NOT_FOUND, ErrorCode.PERMISSION_DENIED}
)
"""Errors whose messages repeat what was sent, which may be what is not to be kept."""

_encode = msgspec.json.Encoder().encode


def project(
    call: ToolCall,
    result: ToolResult,
    *,
    call_id: str,
    started_at: float,
    transport: str,
    principal: Principal,
    session_id: str,
    session_label: str,
    client: ClientInfo,
    result_bytes: int = 0,
) -> CallRow:
    """The row of one ended call; ``started_at`` is Unix time in seconds, when the call came in.

    The row holds the arguments themselves: the store's writer keeps of them what the operator allows.
    """
    metadata, error = result.metadata, result.error
    usage, cost = metadata.usage, metadata.cost
    return CallRow(
        id=call_id,
        started_at=started_at,
        transport=transport,
        principal=principal.name,
        session_id=session_id,
        session_label=session_label,
        client=f"{client.name} {client.version}".strip()[:MAX_NAME_CHARS],
        request_id=_encode(call.request_id).decode(),
        tool=call.name[:MAX_NAME_CHARS],
        outcome=result.outcome,
        message=_message(error.message) if error and error.code not in QUOTES_ITS_CALLER else None,
        executed=error.executed if error else "yes",
        arguments=call.arguments,
        arguments_bytes=call.frame_bytes,
        result_bytes=result_bytes,
        latency_ms=metadata.latency_ms,
        queue_ms=metadata.timings.queue_ms,
        tool_ms=metadata.timings.tool_ms,
        provider_ms=metadata.timings.provider_ms,
        provider=metadata.provider,
        model=metadata.model[:MAX_NAME_CHARS] if metadata.model else None,
        simulated=bool(metadata.simulated),
        input_tokens=usage.input_tokens if usage else 0,
        output_tokens=usage.output_tokens if usage else 0,
        cost_amount=cost.amount if cost else None,
        cost_currency=cost.currency if cost else None,
    )


def _message(message: str) -> str:
    kept = redact_text(message[: 2 * MAX_MESSAGE_CHARS])
    return kept if len(kept) <= MAX_MESSAGE_CHARS else kept[: MAX_MESSAGE_CHARS - 1] + "…"
