"""From calls to the rows of Supabase's tables (``supabase/migrations``). Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from ..protocol.calls import Json
from ..store import CallRow

Record = dict[str, Any]
"""One row: column → value, as JSON."""


def records(rows: Iterable[CallRow]) -> dict[str, list[Record]]:
    """Table → its rows for these calls, in the order in which they are to be written; no id twice in a table."""
    calls = list(rows)
    return {
        "toold_sessions": _sessions(calls),
        "toold_calls": [_call(row) for row in calls],
        "toold_provider_calls": [_provider_call(row) for row in calls if row.provider],
    }


def _sessions(rows: Iterable[CallRow]) -> list[Record]:
    sessions: dict[str, Record] = {}
    for row in rows:
        at = _time(row.started_at)
        known = sessions.get(row.session_id)
        first, last = (known["first_call_at"], known["last_call_at"]) if known else (at, at)
        sessions[row.session_id] = {
            "id": _clean(row.session_id),
            "principal": _clean(row.principal),
            "label": _clean(row.session_label),
            "client": _clean(row.client),
            "transport": row.transport,
            "first_call_at": min(first, at),
            "last_call_at": max(last, at),
        }
    return list(sessions.values())


def _call(row: CallRow) -> Record:
    return {
        "id": row.id,
        "started_at": _time(row.started_at),
        "transport": row.transport,
        "principal": _clean(row.principal),
        "session_id": _clean(row.session_id),
        "session_label": _clean(row.session_label),
        "client": _clean(row.client),
        "request_id": row.request_id,
        "tool": _clean(row.tool),
        "outcome": row.outcome,
        "message": _clean(row.message),
        "executed": row.executed,
        "arguments": _clean(row.arguments),
        "arguments_bytes": row.arguments_bytes,
        "result_bytes": row.result_bytes,
        "latency_ms": row.latency_ms,
        "queue_ms": row.queue_ms,
        "tool_ms": row.tool_ms,
        "provider_ms": row.provider_ms,
    }


def _provider_call(row: CallRow) -> Record:
    return {
        "id": row.id,
        "call_id": row.id,
        "started_at": _time(row.started_at),
        "principal": _clean(row.principal),
        "provider": row.provider,
        "model": _clean(row.model),
        "simulated": row.simulated,
        "outcome": row.outcome,
        "latency_ms": row.provider_ms,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost_amount": row.cost_amount,
        "cost_currency": row.cost_currency,
    }


def _time(unix_s: float) -> str:
    # Always with microseconds, so that the texts of two times compare as the times do.
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="microseconds")


def _clean(value: Json) -> Json:
    """The value without NUL characters, which PostgreSQL takes in no text: callers must not be able to keep a call
    out of the audit by them.
    """
    if isinstance(value, str):
        return value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_clean(item) for item in value]
    return value
