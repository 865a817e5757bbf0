"""Calls of tools that their server runs only as tasks (revision 2025-11-25): creates, awaits and cancels the tasks.

Importing this module takes a second, because of the SDK.
"""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal, Protocol

from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CallToolRequest,
    CancelTaskRequest,
    CancelTaskRequestParams,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    ServerCapabilities,
    TaskMetadata,
)

from ...protocol.error_codes import CallError, ProviderError
from . import upstream_failures
from .upstream_exchange import UpstreamExchange

_KEPT_LONGER_S: Final = 60.0
"""How long the server should keep a task after the deadline of its call."""
_POLL_S: Final = 1.0
"""The interval between polls of a task, if the server suggests none."""
_MIN_POLL_S: Final = 0.05
_MAX_POLL_S: Final = 5.0
_CANCEL_S: Final = 0.9
"""The timeout of the answer to a cancellation. The call's caller waits at most a second."""
_MAX_ID_CHARS: Final = 1000

_ENDED: Final = frozenset({"completed", "failed", "cancelled"})

TaskKind = Literal["cancellable", "uncancellable"]
"""The operations on the tasks of a server."""


def task_kind(capabilities: ServerCapabilities) -> TaskKind | None:
    """The kind of tasks that a server creates for tool calls; None if it creates none."""
    tasks = capabilities.tasks
    tools = None if tasks is None or tasks.requests is None else tasks.requests.tools
    if tasks is None or tools is None or tools.call is None:
        return None
    return "uncancellable" if tasks.cancel is None else "cancellable"


class SendToServer(Protocol):
    """Sends a request of the SDK's types; returns its result unchanged."""

    async def __call__(
        self, request: Any, exchange: UpstreamExchange, on_progress: ProgressFnT | None = None
    ) -> dict[str, Any]: ...


class UpstreamTask:
    """One call of a tool as a task."""

    def __init__(
        self, source: str, send: SendToServer, exchange: UpstreamExchange, on_progress: ProgressFnT, kind: TaskKind
    ) -> None:
        """``on_progress`` also takes the messages of a working task."""
        self._source = source
        self._send = send
        self._exchange = exchange
        self._on_progress = on_progress
        self._kind = kind
        self._has_ended = False

    def __repr__(self) -> str:
        return f"<UpstreamTask of {self._source}>"

    async def run(self, call: CallToolRequest, seconds: float) -> dict[str, Any]:
        """Creates the task, waits until it has ended, and returns the result of the tool, in any form. If the call is
        cancelled or reaches its deadline (``seconds`` from now), the task is cancelled.

        Raises:
            CallError: there is no result.
        """
        kept_ms = round((seconds + _KEPT_LONGER_S) * 1000)
        call.params.task = TaskMetadata(ttl=kept_ms)
        created = await self._send(call, self._exchange, self._on_progress)
        if "task" not in created:
            return created  # the server has answered the call itself
        task_id, status, pause_s = self._read(created["task"])
        try:
            return await self._result(task_id, status, pause_s)
        except CallError as error:
            if error.executed == "no":  # the error concerns the failed request; the call itself was accepted
                error.executed, error.retryable = "maybe", False
            raise
        finally:
            if not self._has_ended and self._kind == "cancellable":
                await self._cancel(task_id)

    async def _result(self, task_id: str, status: str, pause_s: float) -> dict[str, Any]:
        shown, count = "", 0
        while status not in _ENDED:
            if status == "input_required":
                break  # the task's questions come with the request for the result, which waits for the end
            await self._pause(pause_s)
            request = GetTaskRequest(params=GetTaskRequestParams(task_id=task_id))
            task = await self._send(request, self._exchange)
            known, status, pause_s = self._read(task)
            if known != task_id:
                raise self._invalid()
            message = task.get("statusMessage")
            if isinstance(message, str) and message != shown:
                shown, count = message, count + 1
                await self._on_progress(count, None, message)
        self._has_ended = status in _ENDED
        if status == "cancelled":
            raise ProviderError(f"{self._source} cancelled the task of this call.", executed="maybe")
        payload = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task_id))
        result = await self._send(payload, self._exchange)
        self._has_ended = True
        return result

    def _read(self, task: object) -> tuple[str, str, float]:
        """The id, the status and the suggested pause of a task.

        Raises:
            ProviderError: the task is not valid MCP.
        """
        fields = task if isinstance(task, Mapping) else {}
        task_id, status, pause_ms = fields.get("taskId"), fields.get("status"), fields.get("pollInterval")
        if not isinstance(task_id, str) or not 0 < len(task_id) <= _MAX_ID_CHARS:
            raise self._invalid()
        if status not in {*_ENDED, "working", "input_required"}:
            raise self._invalid()
        return task_id, status, _pause_s(pause_ms)

    def _invalid(self) -> ProviderError:
        return ProviderError(f"{self._source}'s task is not valid MCP.", executed="maybe")

    async def _pause(self, seconds: float) -> None:
        try:
            async with self._exchange.timeout():
                await asyncio.sleep(seconds)
        except TimeoutError:
            raise upstream_failures.timed_out(self._source, sent=True) from None

    async def _cancel(self, task_id: str) -> None:
        request = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task_id))
        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + _CANCEL_S)
        with suppress(CallError):  # the task may have ended
            await self._send(request, exchange)


def _pause_s(pause_ms: object) -> float:
    """The suggested pause, within bounds. A timer with NaN would break the order of all timers of the event loop."""
    if not isinstance(pause_ms, int | float) or (isinstance(pause_ms, float) and math.isnan(pause_ms)):
        return _POLL_S
    return min(max(pause_ms, _MIN_POLL_S * 1000), _MAX_POLL_S * 1000) / 1000
