"""Where ended calls are written down: one audit row each, and the metrics. Nobody waits for either."""

import secrets
import time
from itertools import count

import structlog

from ..audit import project
from ..protocol.calls import ToolCall, ToolResult
from ..store import Store
from .dispatch import RunningCall, Session
from .metrics import Metrics

_log = structlog.get_logger("toold.calls")


class CallRecorder:
    """Satisfies ``dispatch.Recorder``."""

    def __init__(self, store: Store, metrics: Metrics) -> None:
        self._store = store
        self._metrics = metrics
        self._refusals = count(1)
        self._epoch = secrets.token_hex(6)

    def ended(self, running: RunningCall, result: ToolResult, result_bytes: int) -> None:
        self._measure(running.tool.name, result)
        session = running.session
        self._store.record(
            project(
                running.call,
                result,
                call_id=running.id,
                started_at=running.started_at,
                transport=session.transport,
                principal=session.principal,
                session_id=session.id,
                session_label=session.label,
                client=session.client,
                result_bytes=result_bytes,
            )
        )
        if not running.tool.local:
            _tell(running.tool.name, result)

    def refused(self, session: Session, call: ToolCall, result: ToolResult) -> None:
        self._measure(call.name, result)
        self._store.record(
            project(
                call,
                result,
                call_id=f"{self._epoch}-r{next(self._refusals):x}",
                started_at=time.time(),
                transport=session.transport,
                principal=session.principal,
                session_id=session.id,
                session_label=session.label,
                client=session.client,
            )
        )
        if result.error is not None:
            _log.info("call refused", request_id=call.request_id, code=result.error.code, why=result.error.message)

    def _measure(self, tool: str, result: ToolResult) -> None:
        metadata = result.metadata
        self._metrics.call_ended(
            tool,
            result.error.code if result.error else "ok",
            seconds=metadata.latency_ms / 1000,
            queue_seconds=metadata.timings.queue_ms / 1000,
        )
        if metadata.usage is not None and metadata.provider and metadata.model:
            self._metrics.tokens_used(metadata.provider, metadata.model, metadata.usage, metadata.cost)


def _tell(tool: str, result: ToolResult) -> None:
    metadata = result.metadata
    _log.info(
        "call ended",
        tool=tool,
        outcome=result.error.code if result.error else "ok",
        latency_ms=metadata.latency_ms,
        model=metadata.model,
    )
