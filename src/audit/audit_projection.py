"""Creates the audit row of an ended call. Pure: the caller supplies times and ids."""

from typing import Final

import msgspec

from ..protocol.tool_call import ClientInfo, Principal, ToolCall, ToolResult
from ..store import CallRow

MAX_NAME_CHARS: Final = 128
"""The maximum length of the names of tools, clients and models. Callers choose the first two."""

_encode = msgspec.json.Encoder().encode


def audit_row_of(
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
    message: str | None = None,
) -> CallRow:
    """Returns the row of an ended call; ``started_at`` is the Unix time in seconds at which the call arrived.

    The row has the whole arguments: the store's writer reduces them according to ``audit_content``.
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
        message=message,
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
