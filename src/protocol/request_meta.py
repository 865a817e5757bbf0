"""The part of the ``_meta`` of a client's request that is passed on to the MCP server that answers. Pure."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

from .trace_context import TRACEPARENT

_OF_THE_HOP: Final = frozenset({"progressToken", TRACEPARENT})
"""Keys that are not passed on: the daemon has its own token for each request, and sends the span separately
(``current_traceparent``).
"""
_RESERVED: Final = frozenset({"modelcontextprotocol", "mcp"})
"""Labels of prefixes that MCP reserves for keys about this connection, its revision and its client."""
_OWN_PREFIX: Final = "toold"
_RESERVED_LABELS: Final = 2
"""Only the first labels of a prefix are reserved: the second in 2025-11-25, in earlier revisions also the first."""
_WITHOUT_MEANING: Final = frozenset({"tracestate", "baggage"})
"""Keys about traces, which do not change an answer."""

current_request_meta: ContextVar[Mapping[str, Any] | None] = ContextVar("request_meta", default=None)
"""The ``_meta`` that the running call passes on; None if it has none, or is a child call."""


def passed_meta(meta: object) -> dict[str, Any] | None:
    """Returns the part of a request's ``_meta`` that another server gets; None if it is empty."""
    if not isinstance(meta, Mapping):
        return None
    return {key: value for key, value in meta.items() if isinstance(key, str) and _is_passed(key)} or None


def may_change_answer(meta: Mapping[str, Any] | None) -> bool:
    """Whether the answer of a server may depend on a passed ``_meta``."""
    return meta is not None and not meta.keys() <= _WITHOUT_MEANING


def _is_passed(key: str) -> bool:
    prefix, slash, _ = key.partition("/")
    if not slash:
        return key not in _OF_THE_HOP
    return prefix != _OWN_PREFIX and _RESERVED.isdisjoint(prefix.split(".")[:_RESERVED_LABELS])
