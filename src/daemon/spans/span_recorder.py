"""Records ended calls and requests on the event loop, in some microseconds. A thread creates the spans."""

import asyncio
import os
import time
from types import TracebackType
from typing import Any, Final, Self

from ...audit import error_summary
from ...protocol.error_codes import CallError, ErrorCode
from ...protocol.tool_call import ToolCall, ToolResult
from ...protocol.trace_context import (
    TraceParent,
    current_traceparent,
    parse_traceparent,
    span_id_of,
    trace_id_of,
)
from ...providers import Completion, CompletionRequest, EmbeddingRequest, Embeddings
from ...tools import OWN_SOURCE, ValueMask
from ..dispatch import RunningCall, Session
from .span_content import call_content, completion_content
from .span_projection import EndedCall, EndedCompletion, ResponseFacts
from .span_queue import SpanQueue

_MESSAGE_CHARS: Final = 500
"""The limit of an error's message, as in the audit."""


class SpanRecorder:
    """Implements ``dispatch.TracePort``, and records ended and refused calls."""

    def __init__(self, queue: SpanQueue, *, full: bool) -> None:
        """``full``: whether spans contain the content of calls."""
        self._queue = queue
        self._full = full

    def span_of(self, call: RunningCall) -> TraceParent:
        """The span of a running call."""
        root = _root(call)
        span_id = span_id_of(call.id, orchestration=call.tool.orchestration)
        caller = parse_traceparent(root.request.traceparent)
        if caller is None:
            return TraceParent(trace_id_of(root.id), span_id, True)
        return TraceParent(caller.trace_id, span_id, caller.sampled)

    def completion(
        self, call: RunningCall, request: CompletionRequest | EmbeddingRequest, provider: str
    ) -> "CompletionSpan":
        """Implements ``TracePort``."""
        return CompletionSpan(self._queue, self.span_of(call), request, provider, call.mask, full=self._full)

    def call_ended(self, call: RunningCall, result: ToolResult) -> None:
        """Record an ended call."""
        if call.paused is not None:  # it has not ended
            return
        caller = parse_traceparent(_root(call).request.traceparent)
        if caller is not None and not caller.sampled:
            return
        request = call.request
        self._queue.add(
            EndedCall(
                call_id=call.id,
                parent_id=None if call.parent is None else call.parent.id,
                remote=caller,
                orchestration=call.tool.orchestration,
                tool=call.tool.name,
                source=call.tool.source,
                started_at=call.started_at,
                **self._outcome(call.session, result, call.error_summary),
                conversation=_conversation(request, result) if call.tool.conversational else None,
                content=call_content(request.arguments, request.frame_bytes, result) if self._full else None,
            )
        )

    def call_refused(
        self,
        session: Session,
        request: ToolCall,
        result: ToolResult,
        *,
        call_id: str,
        summary: str | None,
        parent: RunningCall | None,
    ) -> None:
        """Record a call that was refused."""
        caller = parse_traceparent(request.traceparent if parent is None else _root(parent).request.traceparent)
        if caller is not None and not caller.sampled:
            return
        self._queue.add(
            EndedCall(
                call_id=call_id,
                parent_id=None if parent is None else parent.id,
                remote=caller,
                orchestration=False,
                tool=request.name,
                source=OWN_SOURCE,
                started_at=time.time(),
                **self._outcome(session, result, summary),
                content=call_content(request.arguments, request.frame_bytes, result) if self._full else None,
            )
        )

    def _outcome(self, session: Session, result: ToolResult, summary: str | None) -> dict[str, Any]:
        error, metadata = result.error, result.metadata
        return {
            "outcome": result.outcome,
            "message": None if error is None else _sendable(error.message if self._full else summary),
            "latency_ms": metadata.latency_ms,
            "queue_ms": metadata.timings.queue_ms,
            "simulated": bool(metadata.simulated),
            "transport": session.transport,
            "principal": session.principal.name,
            "session": session.label,
            "client": f"{session.client.name} {session.client.version}".strip(),
        }


class CompletionSpan:
    """A context manager around one request to a model; for one use."""

    def __init__(
        self,
        queue: SpanQueue,
        parent: TraceParent,
        request: CompletionRequest | EmbeddingRequest,
        provider: str,
        mask: ValueMask | None,
        *,
        full: bool,
    ) -> None:
        self._queue = queue
        self._parent = parent
        self._span = TraceParent(parent.trace_id, os.urandom(8), parent.sampled)
        self._request = request
        self._provider = provider
        self._mask = mask
        self._full = full
        self._answer: Completion | Embeddings | None = None
        self._started_at = self._began = 0.0

    def completed(self, answer: Completion | Embeddings) -> None:
        """Records the model's answer."""
        self._answer = answer

    def __enter__(self) -> Self:
        self._started_at, self._began = time.time(), time.monotonic()
        current_traceparent.set(
            str(self._span)
        )  # each request to a model has a separate task, and so a separate context
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if not self._span.sampled:
            return
        answer = self._answer
        self._queue.add(
            EndedCompletion(
                span=self._span,
                parent_id=self._parent.span_id,
                provider=self._provider,
                model=self._request.model.id,
                started_at=self._started_at,
                ended_at=self._started_at + time.monotonic() - self._began,
                response=None if answer is None else _facts(answer),
                error=None if error is None else _code(error),
                message=self._message(error) if isinstance(error, CallError) else None,
                **self._request_facts(),
            )
        )

    def _request_facts(self) -> dict[str, Any]:
        request, answer = self._request, self._answer
        if isinstance(request, EmbeddingRequest):  # traces do not show its texts and vectors
            return {"operation": "embeddings", "encoding": request.encoding}
        completion = answer if isinstance(answer, Completion) else None
        content = completion_content(request, completion, self._mask) if self._full else None
        return {"temperature": request.temperature, "max_tokens": request.max_tokens, "content": content}

    def _message(self, error: CallError) -> str | None:
        return _sendable(error.message if self._full else error_summary(error))


def _root(call: RunningCall) -> RunningCall:
    while call.parent is not None:
        call = call.parent
    return call


def _conversation(request: ToolCall, result: ToolResult) -> str | None:
    """The id of the conversation that a call continues or has begun."""
    for place in (request.arguments, result.structured):
        if isinstance(place, dict) and isinstance(place.get("continuation_id"), str):
            name: str = place["continuation_id"]
            return name
    return None


def _facts(answer: Completion | Embeddings) -> ResponseFacts:
    if isinstance(answer, Embeddings):
        return ResponseFacts(answer.model, None, answer.usage, answer.cost, answer.simulated, answer.dimensions)
    return ResponseFacts(answer.model, answer.finish_reason, answer.usage, answer.cost, answer.simulated)


def _code(error: BaseException) -> str:
    if isinstance(error, CallError):
        return str(error.code)
    return str(ErrorCode.CANCELLED) if isinstance(error, asyncio.CancelledError) else type(error).__name__


def _sendable(message: str | None) -> str | None:
    return None if message is None else message[:_MESSAGE_CHARS]
