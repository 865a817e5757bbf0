"""Tasks: calls that outlive their request, in the two forms that MCP defines.

A task is a session with one call, and the task's id is the session's resume key (decision 30). So a task's result is
stored, limited and deleted like the results of any session, and survives a restart.
"""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_urlsafe
from typing import Any, Final, Literal

from ....protocol.error_codes import ErrorCode
from ....protocol.mcp.input_rounds import asked, input_requests
from ....protocol.mcp.mcp_result import SERVER_INFO, TASK_KEY, call_result
from ....protocol.mcp.mcp_revision import McpRevision
from ....protocol.mcp.request_envelope import SERVER_KEY
from ....protocol.questions.question_table import OpenQuestion
from ....protocol.session_registry import hash_key
from ....protocol.tool_call import Principal, ToolResult
from ...dispatch import Router, RunningCall, Session
from .mcp_exchange import ABSENT_PORT

CALL: Final = "call"
"""The request id of a session's one call: JSON-RPC ids are unique per client only."""
_ID_BYTES: Final = 32
"""Random bytes in a task's id, so that it cannot be guessed."""
_MAX_ID_CHARS: Final = 200
_POLL_MS: Final = 1000
_CHECK_INTERVAL_S: Final = 1.0

Status = Literal["working", "input_required", "completed", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class McpTask:
    """The state of a task. Times are Unix times in seconds."""

    id: str
    working: bool
    created_at: float
    updated_at: float
    ttl_ms: int
    message: str | None = None
    """The tool's last progress message, while the call runs."""
    result: ToolResult | None = None
    """The result, once the call is done."""
    questions: tuple[OpenQuestion, ...] = ()
    """The open questions of the call."""

    def status(self, revision: McpRevision) -> Status:
        """Returns the status in the revision's terms: in 2025-11-25, a tool's error makes the task ``failed``."""
        if self.working or self.result is None:
            return "input_required" if self.questions else "working"
        if self.result.outcome == ErrorCode.CANCELLED:
            return "cancelled"
        return "failed" if self.result.error and revision.tasks == "requested" else "completed"


class McpTasks:
    """The tasks of all principals; each is a session of the router."""

    def __init__(self, router: Router) -> None:
        self._router = router

    async def create(self, session: Session, running: RunningCall) -> McpTask:
        """Converts the session of a running call to a task. On return, the id is persisted and survives a crash."""
        task_id = f"{int(time.time() * 1000):x}-{token_urlsafe(_ID_BYTES)}"
        self._router.sessions.make_resumable(session, hash_key(task_id))
        await self._router.sessions.flush()
        return self._working(task_id, running)

    async def lookup(self, task_id: object, principal: Principal) -> tuple[McpTask, Session] | None:
        """Returns the principal's task with this id, if its result is still stored.

        Raises:
            ServiceUnavailableError: the disk does not respond.
        """
        if not isinstance(task_id, str) or _created_at(task_id) is None:
            return None
        session = await self._router.sessions.find(
            hash_key(task_id), principal, transport="mcp", absent_port=ABSENT_PORT
        )
        if session is None:
            return None
        running = self._router.running_call(session, CALL)
        if running is not None:
            return self._working(task_id, running), session
        result = self._router.result_of(session, CALL)
        if result is None and self._router.status_of(session, CALL) != "running":
            return None
        return self._task(task_id, result), session

    async def wait_ended(self, session: Session, timeout_s: float | None = None) -> None:
        """Waits until a task's call is answered, at most ``timeout_s`` seconds; with None, without limit."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while self._router.status_of(session, CALL) == "running" and (end is None or time.monotonic() < end):
            running = self._router.running_call(session, CALL)
            work = None if running is None else running.task
            # Polls, because the call of a hanging tool is answered while its asyncio task continues.
            await (asyncio.wait({work}, timeout=_CHECK_INTERVAL_S) if work else asyncio.sleep(0.01))

    def cancel(self, session: Session) -> None:
        """Cancels a task's call; no effect if the call is done."""
        self._router.cancel(session, f"s{CALL}")

    def _working(self, task_id: str, running: RunningCall) -> McpTask:
        latest = running.last_progress
        updated_at = running.started_at + max(0.0, running.last_progress_at - running.started if latest else 0.0)
        task = self._task(task_id, None, updated_at, latest.message if latest else None)
        return replace(task, questions=tuple(self._router.questions.open_questions(running)))

    def _task(
        self, task_id: str, result: ToolResult | None, updated_at: float | None = None, message: str | None = None
    ) -> McpTask:
        created_at = _created_at(task_id) or 0.0
        if updated_at is None:
            updated_at = created_at + (result.metadata.latency_ms / 1000 if result else 0.0)
        ttl_ms = round(self._router.limits.result_ttl_s * 1000)
        return McpTask(task_id, result is None, created_at, max(created_at, updated_at), ttl_ms, message, result)


def create_task_result(task: McpTask, revision: McpRevision) -> dict[str, Any]:
    """The result of a ``tools/call`` that has become a task."""
    if revision.tasks == "requested":
        return {"task": _fields(task, revision)}
    return {**_fields(task, revision), "resultType": "task", "_meta": {SERVER_KEY: SERVER_INFO}}


def get_task_result(task: McpTask, revision: McpRevision) -> dict[str, Any]:
    """The result of ``tasks/get``."""
    if revision.tasks == "requested":
        return _fields(task, revision)
    result = {**_fields(task, revision), "resultType": "complete", "_meta": {SERVER_KEY: SERVER_INFO}}
    if task.result is not None and task.status(revision) == "completed":
        result["result"] = call_result(task.result, revision)
    if task.questions:
        result["inputRequests"] = input_requests(asked(task.questions))
    return result


def task_result(task_id: str, result: ToolResult, revision: McpRevision) -> Any:
    """The result of ``tasks/result``: the call's result and the task's id."""
    plain = call_result(result, revision)
    plain.meta[TASK_KEY] = {"taskId": task_id}
    return plain


def _fields(task: McpTask, revision: McpRevision) -> dict[str, Any]:
    requested = revision.tasks == "requested"
    fields: dict[str, Any] = {
        "taskId": task.id,
        "status": task.status(revision),
        "createdAt": _iso(task.created_at),
        "lastUpdatedAt": _iso(task.updated_at),
        "ttl" if requested else "ttlMs": task.ttl_ms,
        "pollInterval" if requested else "pollIntervalMs": _POLL_MS,
    }
    message = task.result.error.message if task.result and task.result.error else task.message
    return fields if message is None else {**fields, "statusMessage": message}


def _created_at(task_id: str) -> float | None:
    """Returns the creation time that a task's id begins with; None for other ids."""
    created, dash, _ = task_id.partition("-")
    if not dash or not 0 < len(created) < 12 or len(task_id) > _MAX_ID_CHARS:
        return None
    try:
        return int(created, 16) / 1000
    except ValueError:
        return None


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
