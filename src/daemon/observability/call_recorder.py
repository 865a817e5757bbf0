"""Records ended calls: one audit row per call, written asynchronously, the metrics, and the span."""

import time

import structlog

from ...audit import Policy, audit_row_of, stored_message
from ...protocol.error_codes import ToolError
from ...protocol.tool_call import FAILOVER_REASON, ToolCall, ToolResult
from ...store import AuditTrail, CallRow
from ..dispatch import RunningCall, Session, without_children
from ..spans.span_recorder import SpanRecorder
from .live_activity import LiveActivity
from .metrics import Metrics

_log = structlog.get_logger(__name__)


class CallRecorder:
    """Implements ``dispatch.RecorderPort``. ``spans`` is None if no traces are recorded."""

    def __init__(
        self, audit: AuditTrail, metrics: Metrics, content: Policy = "shape", spans: SpanRecorder | None = None
    ) -> None:
        self._audit = audit
        self._metrics = metrics
        self._spans = spans
        self.activity = LiveActivity()
        """The ended calls that the dashboard shows."""
        self.content: Policy = content
        """The part of error messages that is stored (``audit_content``). A reload replaces it."""

    def call_ended(self, call: RunningCall, result: ToolResult, result_bytes: int) -> None:
        self.count(call, result)
        self._audit.record(self.row(call, result, result_bytes))

    def call_refused(
        self,
        session: Session,
        request: ToolCall,
        result: ToolResult,
        *,
        call_id: str,
        summary: str | None,
        parent: RunningCall | None = None,
    ) -> None:
        self._metrics.call_ended(request.name, result)
        message = None if result.error is None else self._message(result.error, summary)
        if self.activity.watched:
            self.activity.call_ended(session, request, result, call_id, message)
        if self._spans is not None:
            self._spans.call_refused(session, request, result, call_id=call_id, summary=summary, parent=parent)
        self._audit.record(_row(session, request, result, call_id, time.time(), 0, message))
        if result.error is not None:
            _log.info("call refused", request_id=request.request_id, code=result.error.code, why=message)

    def count(self, call: RunningCall, result: ToolResult) -> None:
        """Count an ended call in the metrics, log it and record its span. The audit row is written elsewhere."""
        self._metrics.call_ended(call.request.name, result)
        if self.activity.watched:
            message = None if result.error is None else self._message(result.error, call.error_summary)
            self.activity.call_ended(call.session, call.request, result, call.id, message)
        if self._spans is not None:
            self._spans.call_ended(call, result)
        if call.meter.by_model:
            for used in call.meter.usage_by_model:
                self._metrics.model_used(call.tool.name, used)
        if not call.tool.local:
            metadata = result.metadata
            _log.info(
                "call ended",
                tool=call.tool.name,
                outcome=result.outcome,
                latency_ms=metadata.latency_ms,
                model=metadata.model,
            )

    def row(self, call: RunningCall, result: ToolResult, result_bytes: int) -> CallRow:
        """A call's audit row."""
        own = result if call.child_scope is None else without_children(call, result)
        reason = own.metadata.model_choice_reason
        message = None
        changed = _changes_by_hooks(call) if call.changed_by or call.result_changed_by else None
        if result.error is not None:
            message = self._message(result.error, call.error_summary)
        elif changed is not None:
            message = stored_message(self.content, changed, changed)
        elif reason is not None and reason.startswith(FAILOVER_REASON):
            message = stored_message(self.content, reason, reason)
        elif own.metadata.cache_age_s is not None:
            from_cache = f"answered with a cached result, {own.metadata.cache_age_s:g} s old"
            message = stored_message(self.content, from_cache, from_cache)
        return _row(call.session, call.request, own, call.id, call.started_at, result_bytes, message)

    def _message(self, error: ToolError, summary: str | None) -> str | None:
        return stored_message(self.content, error.message, summary)


def _changes_by_hooks(call: RunningCall) -> str | None:
    """A text about the changes that hooks made to a call; None without changes."""
    parts = [
        *([] if call.changed_by is None else [f"arguments changed by the hook {call.changed_by}"]),
        *([] if call.result_changed_by is None else [f"result changed by the hook {call.result_changed_by}"]),
    ]
    return ", ".join(parts) or None


def _row(
    session: Session,
    call: ToolCall,
    result: ToolResult,
    call_id: str,
    started_at: float,
    result_bytes: int,
    message: str | None,
) -> CallRow:
    return audit_row_of(
        call,
        result,
        call_id=call_id,
        started_at=started_at,
        transport=session.transport,
        principal=session.principal,
        session_id=session.id,
        session_label=session.label,
        client=session.client,
        result_bytes=result_bytes,
        message=message,
    )
