"""The values for the page of a call, from the rows of its tree. Pure."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import quote

import msgspec
from markupsafe import Markup

from ....dashboard import shown_result
from ....dashboard.page_formats import count, duration, line, meaning, money, size, when
from ....protocol.error_codes import ERROR_CLASSES, ErrorCode
from ....store import CallRow
from .dashboard_port import KeptResult

WIDTH: Final = 1000
"""The units of the timeline."""


def ended_call(tree: Sequence[CallRow], call: CallRow, kept: KeptResult) -> dict[str, Any]:
    """The values of the template ``call`` for an ended call. ``tree`` contains the call and its descendants."""
    values = msgspec.structs.asdict(call)
    error = None if kept.result is None else kept.result.error
    if error is not None:
        values["message"] = error.message  # the whole message; the audit has a shorter text or a summary
        values["retryable"] = error.retryable
    else:
        values["retryable"] = None  # the audit does not record it
    values["kind"] = "ok" if call.outcome == "ok" else "error"
    other = max(0.0, call.latency_ms - call.queue_ms - call.tool_ms - call.provider_ms)
    layers = [
        {"name": "waiting for permits", "ms": call.queue_ms},
        {"name": "the tool", "ms": call.tool_ms},
        {"name": "model vendors", "ms": call.provider_ms},
        {"name": "everything else", "ms": other},
    ]
    return {
        "call": values,
        **_explained(call.outcome),
        "facts": _facts(call),
        "layers": layers,
        "tree": timeline(tree, call),
        "result": None if kept.result is None else shown_result(kept.result),
        "missing": kept.missing,
    }


def running_call(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The values of the template ``call_running`` for a running call and its running descendants
    (``status_report.running_row``).
    """
    row, *below = rows
    deadline = row["started_at"] + row["age_s"] + row["remaining_s"]
    facts = [
        ("Id", row["id"]),
        *_parent(row["id"]),
        ("Started", when(row["started_at"])),
        ("Deadline", when(round(deadline))),
        ("Session", line(row["session"])),
        ("Client", line(row["client"])),
        ("Principal", line(row["principal"])),
    ]
    children = [{**child, "depth": child["depth"] - row["depth"]} for child in below]
    return {"call": row, "facts": facts, "running_children": children}


def timeline(tree: Sequence[CallRow], call: CallRow) -> list[dict[str, Any]]:
    """Each call of the tree with its depth and its place on the timeline of ``call``."""
    length = max(call.latency_ms, 0.001)
    rows = []
    for row in tree:
        offset = max(0.0, (row.started_at - call.started_at) * 1000)
        x = min(WIDTH - 2.0, offset / length * WIDTH)
        width = max(2.0, min(WIDTH - x, row.latency_ms / length * WIDTH))
        rows.append(
            {
                "id": row.id,
                "tool": row.tool,
                "outcome": row.outcome,
                "latency_ms": row.latency_ms,
                "offset_ms": offset,
                "depth": row.id.count("/") - call.id.count("/"),
                "x": round(x, 1),
                "width": round(width, 1),
            }
        )
    return rows


def _explained(outcome: str) -> dict[str, str]:
    """The meaning of an error code, and the remedy; empty for ``ok`` and unknown codes."""
    advice = ERROR_CLASSES[ErrorCode(outcome)].advice if outcome in set(ErrorCode) else ""
    return {"meaning": "" if outcome == "ok" else meaning(outcome), "advice": advice}


def _parent(call_id: str) -> list[tuple[str, Any]]:
    """A link to the call that made this one, if it is a child call."""
    parent, slash, _ = call_id.rpartition("/")
    return [("Child of", Markup('<a href="/ui/calls/{}">{}</a>').format(quote(parent), parent))] if slash else []


def _facts(call: CallRow) -> list[tuple[str, Any]]:
    facts: list[tuple[str, Any]] = [
        ("Id", call.id),
        ("Request id", line(call.request_id.strip('"'), 80)),
        *_parent(call.id),
        ("Started", when(call.started_at)),
        ("Took", duration(call.latency_ms)),
        ("Session", line(call.session_label)),
        ("Client", f"{line(call.client)} over {call.transport}"),
        ("Principal", line(call.principal)),
        ("Arguments", size(call.arguments_bytes)),
        ("Answer", size(call.result_bytes)),
    ]
    if call.model is not None:
        simulated = " (simulated)" if call.simulated else ""
        facts.append(("Model", f"{line(call.model)}{simulated}"))
        facts.append(("Tokens", f"{count(call.input_tokens)} in, {count(call.output_tokens)} out"))
    if call.cost_amount is not None and call.cost_currency is not None:
        facts.append(("Cost", money({call.cost_currency: call.cost_amount})))
    return facts
