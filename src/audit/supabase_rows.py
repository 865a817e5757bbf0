"""Converts calls to the rows of the Supabase tables (``supabase/migrations``) and back. Pure."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from ..store import ChainedRow, Checkpoint, ConversationCopy, clean, microseconds
from .audit_content import redact_message

Record = dict[str, Any]
"""One row: column → value, as JSON."""

MAX_TITLE_CHARS: Final = 80
"""The maximum length of a conversation's title."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def records(rows: Iterable[ChainedRow], chain: str) -> dict[str, list[Record]]:
    """Returns the rows of these calls by table, in the order in which to write the tables; ids are unique per table."""
    calls = list(rows)
    return {
        "toold_sessions": _sessions(calls),
        "toold_calls": [_call(row, chain) for row in calls],
        "toold_provider_calls": [_provider_call(row, chain) for row in calls if row.call.provider],
    }


def _sessions(rows: Iterable[ChainedRow]) -> list[Record]:
    sessions: dict[str, Record] = {}
    for row in (chained.call for chained in rows):
        at = _time(row.started_at)
        known = sessions.get(row.session_id)
        first, last = (known["first_call_at"], known["last_call_at"]) if known else (at, at)
        sessions[row.session_id] = {
            "id": clean(row.session_id),
            "principal": clean(row.principal),
            "label": clean(row.session_label),
            "client": clean(row.client),
            "transport": row.transport,
            "first_call_at": min(first, at),
            "last_call_at": max(last, at),
        }
    return list(sessions.values())


def _call(chained: ChainedRow, chain: str) -> Record:
    row = chained.call
    return {
        "id": row.id,
        "started_at": _time(row.started_at),
        "transport": row.transport,
        "principal": clean(row.principal),
        "session_id": clean(row.session_id),
        "session_label": clean(row.session_label),
        "client": clean(row.client),
        "request_id": row.request_id,
        "tool": clean(row.tool),
        "outcome": row.outcome,
        "message": clean(row.message),
        "executed": row.executed,
        "arguments": clean(row.arguments),
        "arguments_bytes": row.arguments_bytes,
        "result_bytes": row.result_bytes,
        "latency_ms": row.latency_ms,
        "queue_ms": row.queue_ms,
        "tool_ms": row.tool_ms,
        "provider_ms": row.provider_ms,
        **_chain_position(chained, chain),
        "mac": chained.mac.hex() if chained.mac else None,
    }


def _provider_call(chained: ChainedRow, chain: str) -> Record:
    row = chained.call
    return {
        "id": row.id,
        "call_id": row.id,
        "started_at": _time(row.started_at),
        "principal": clean(row.principal),
        "provider": row.provider,
        "model": clean(row.model),
        "simulated": row.simulated,
        "outcome": row.outcome,
        "latency_ms": row.provider_ms,
        "input_tokens": row.input_tokens,
        "output_tokens": row.output_tokens,
        "cost_amount": row.cost_amount,
        "cost_currency": row.cost_currency,
        **_chain_position(chained, chain),
    }


def _chain_position(chained: ChainedRow, chain: str) -> Record:
    """Returns the call's position in the chain. Calls that are older than the chain have none."""
    return {"chain": chain, "seq": chained.seq} if chained.mac else {"chain": None, "seq": None}


def copy_records(copies: Sequence[ConversationCopy]) -> dict[str, list[Record]]:
    """Returns the rows of these copies by table, redacted and limited, in the order in which to write the tables; ids
    are unique per table.

    Takes some milliseconds for a long message: call it in a thread.
    """
    contents = [redact_message(clean(copy.content)) for copy in copies]
    messages = [
        _message(copy, content) for copy, content in zip(copies, contents, strict=True) if copy.position is not None
    ]
    return {"toold_conversations": _conversations(copies, contents), "toold_messages": messages}


def _conversations(copies: Sequence[ConversationCopy], contents: Sequence[Any]) -> list[Record]:
    conversations: dict[str, Record] = {}
    for copy, content in zip(copies, contents, strict=True):
        known = conversations.get(copy.conversation_id, {})
        conversations[copy.conversation_id] = {
            "id": copy.conversation_id,
            "principal": clean(copy.principal),
            "session_id": known.get("session_id") or copy.session_id,
            "title": _title(content) if copy.position == 1 else known.get("title"),
            "started_at": min(known.get("started_at", "~"), _time(copy.started_at), _time(copy.at)),
            "last_message_at": max(known.get("last_message_at", ""), _time(copy.at)),
            "ended_at": None if copy.ended_at is None else _time(copy.ended_at),
        }
    return list(conversations.values())


def _title(content: Any) -> str | None:
    """Returns the beginning of the first message."""
    words = " ".join(content["text"].split())
    return words if len(words) <= MAX_TITLE_CHARS else words[: MAX_TITLE_CHARS - 1] + "…"


def _message(copy: ConversationCopy, content: Any) -> Record:
    return {
        "id": copy.id,
        "conversation_id": copy.conversation_id,
        "position": copy.position,
        "call_id": copy.call_id,
        "principal": clean(copy.principal),
        "role": copy.role,
        "content": content,
        "provider": copy.provider,
        "model": clean(copy.model),
        "created_at": _time(copy.at),
    }


def checkpoint_record(checkpoint: Checkpoint, chain: str) -> Record:
    """Returns the row of ``toold_checkpoints`` for a checkpoint."""
    return {
        "id": f"{chain}-{checkpoint.number}",
        "chain": chain,
        "number": checkpoint.number,
        "kind": checkpoint.kind,
        "first_seq": checkpoint.first_seq,
        "last_seq": checkpoint.last_seq,
        "calls": checkpoint.calls,
        "since": _time(checkpoint.since),
        "until": _time(checkpoint.until),
        "mac_before": checkpoint.before.hex(),
        "mac_after": checkpoint.after.hex(),
        "mac": checkpoint.mac.hex(),
    }


def call_values(call: Record, provider_call: Record | None) -> list[Any]:
    """Returns the values of a call in the form for ``canonical``, from its row of ``toold_calls`` and its row of
    ``toold_provider_calls``, if it has one.

    Raises:
        ValueError, TypeError, KeyError: the rows do not belong to one call that a daemon sent.
    """
    provider_fields = provider_call or {
        "provider": None,
        "model": None,
        "simulated": False,
        "input_tokens": 0,
        "output_tokens": 0,
    }
    repeated = {"call_id": "id", "started_at": "started_at", "principal": "principal", "outcome": "outcome"}
    repeated["latency_ms"] = "provider_ms"
    if any(name in provider_fields and provider_fields[name] != call[column] for name, column in repeated.items()):
        raise ValueError("the two rows belong to different calls")
    arguments = call["arguments"]
    return [
        call["id"],
        _unix_s(call["started_at"]),
        *(call[name] for name in ("transport", "principal", "session_id", "session_label", "client", "request_id")),
        *(call[name] for name in ("tool", "outcome", "message", "executed")),
        None if arguments is None else _encode(arguments),
        *(call[name] for name in ("arguments_bytes", "result_bytes")),
        *(call[name] for name in ("latency_ms", "queue_ms", "tool_ms", "provider_ms")),
        *(provider_fields[name] for name in ("provider", "model", "simulated", "input_tokens", "output_tokens")),
        *(provider_fields.get(name) for name in ("cost_amount", "cost_currency")),
    ]


def checkpoint_of(record: Record) -> Checkpoint:
    """Returns the checkpoint of a row that ``checkpoint_record`` made.

    Raises:
        ValueError, TypeError, KeyError: ``checkpoint_record`` did not make the row.
    """
    return Checkpoint(
        number=record["number"],
        kind=record["kind"],
        first_seq=record["first_seq"],
        last_seq=record["last_seq"],
        calls=record["calls"],
        since=_unix_s(record["since"]),
        until=_unix_s(record["until"]),
        before=bytes.fromhex(record["mac_before"]),
        after=bytes.fromhex(record["mac_after"]),
        mac=bytes.fromhex(record["mac"] or ""),
    )


def _time(unix_s: float) -> str:
    # Always with microseconds, so that times compare as strings.
    return (_EPOCH + timedelta(microseconds=microseconds(unix_s))).isoformat(timespec="microseconds")


def _unix_s(time: str) -> float:
    return (datetime.fromisoformat(time) - _EPOCH) / timedelta(seconds=1)


_encode = msgspec.json.Encoder(decimal_format="number").encode
