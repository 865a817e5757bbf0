"""W3C trace context: the header ``traceparent``, and the ids of a call's trace and span. Pure.

https://www.w3.org/TR/trace-context/ (level 1). Only ``traceparent`` is passed on; ``tracestate`` may be dropped.
"""

import hashlib
import re
from contextvars import ContextVar
from typing import Final, NamedTuple

TRACEPARENT: Final = "traceparent"
"""The name of the header, of the key in MCP's ``_meta``, and of the field of ``call_tool``."""

_FORMAT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_MAX_CHARS: Final = 512
"""Longer values are ignored. Version 00 has 55 characters; later versions may have more."""
_SAMPLED: Final = 1
_RESTART: Final = re.compile(r"~[0-9a-f]+")
"""The suffix of ids of child calls that were made after a restart or a pause (``ChildScope.id_suffix``)."""

current_traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
"""The ``traceparent`` for requests that the running call sends; None if no traces are recorded."""
callers_traceparent: ContextVar[str | None] = ContextVar("callers_traceparent", default=None)
"""The ``traceparent`` of the client, for MCP servers if no traces are recorded; None if it sent none."""


class TraceParent(NamedTuple):
    """The reference to a span that its children carry."""

    trace_id: bytes
    span_id: bytes
    sampled: bool
    """Whether the trace is recorded. The first caller of a trace decides this for all."""

    def __str__(self) -> str:
        return f"00-{self.trace_id.hex()}-{self.span_id.hex()}-{'01' if self.sampled else '00'}"


def parse_traceparent(value: object) -> TraceParent | None:
    """Returns the span that a ``traceparent`` names; None if it is not valid, as the specification demands. Of a later
    version than 00, the fields of version 00 are read.
    """
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        return None
    match = _FORMAT.fullmatch(value)
    if match is None or match[1] == "ff" or (match[1] == "00" and match[5] is not None):
        return None
    trace_id, span_id = bytes.fromhex(match[2]), bytes.fromhex(match[3])
    if not any(trace_id) or not any(span_id):
        return None
    return TraceParent(trace_id, span_id, bool(int(match[4], 16) & _SAMPLED))


def usable_traceparent(value: object) -> str | None:
    """Returns a ``traceparent`` in the form of version 00; None if it is not valid."""
    parent = parse_traceparent(value)
    return None if parent is None else str(parent)


def trace_id_of(root_call_id: str) -> bytes:
    """Returns the id of the trace that begins with a call. It is the same after a restart."""
    return hashlib.sha256(root_call_id.encode()).digest()[:16]


def span_id_of(call_id: str, *, orchestration: bool) -> bytes:
    """Returns the id of a call's span.

    An orchestration call that resumes after a restart or a pause continues its span, so that its earlier children keep
    their parent. Any other call that runs again has a new span.
    """
    name = _RESTART.sub("", call_id) if orchestration else call_id
    return hashlib.sha256(name.encode()).digest()[:8]
