"""``activity``: the caller's own calls, grouped by session."""

import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ..former_arguments import MODEL_OPTIONS, FormerNames
from ..tool import Arguments, tool
from ..tool_context import ToolContext


class ActivityArguments(Arguments):
    """The number of ended calls to list."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        **MODEL_OPTIONS,
        "filter": "calls are listed, not log lines; toolcall_log_tail filters by tool and outcome",
        "source": "calls are listed, not log lines",
        "since": "the latest calls are listed, with their age",
        "until": "the latest calls are listed, with their age",
        "structured": "the answer always has structured data",
    }

    recent: Annotated[int, FormerNames("lines", clamped=True)] = Field(
        default=10, ge=0, le=100, description="Number of recently ended calls to list."
    )


@tool("activity", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def activity(arguments: ActivityArguments, context: ToolContext) -> dict[str, Any]:
    """List your running, waiting, paused and recently ended calls by session, with age, remaining time and progress.
    For the requests of a paused call, use call_status.

    Shows only calls of your own principal, without their arguments and answers.
    """
    daemon, principal = context.daemon, context.principal
    running = [_running(row) for row in daemon.running(principal) if row["id"] != context.call_id]
    running += await daemon.paused(principal)
    ended = await daemon.ended(principal, arguments.recent) if arguments.recent else []
    return {"sessions": _by_session([*running, *(_ended(row, time.time()) for row in ended)])}


def _running(row: dict[str, Any]) -> dict[str, Any]:
    fields = ("id", "tool", "state", "age_s", "remaining_s", "progress")
    return {"session": row["session"], "session_id": row["session_id"], **{name: row[name] for name in fields}}


def _ended(row: dict[str, Any], now: float) -> dict[str, Any]:
    return {
        "session": row["session_label"],
        "session_id": row["session_id"],
        "id": row["id"],
        "tool": row["tool"],
        "state": "ended",
        "age_s": round(max(0.0, now - row["started_at"]), 3),
        "outcome": row["outcome"],
        "latency_ms": row["latency_ms"],
    }


def _by_session(calls: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Groups the calls by session. Sessions are in the order of their first call."""
    sessions: dict[str, dict[str, Any]] = {}
    for call in calls:
        label, session_id = call.pop("session"), call.pop("session_id")
        session = sessions.setdefault(session_id, {"session": label, "session_id": session_id, "calls": []})
        session["calls"].append(call)
    return list(sessions.values())
