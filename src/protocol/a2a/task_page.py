"""The parameters of ``ListTasks``, and the tokens of its pages. Pure."""

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from .a2a_error import A2AError, invalid_field
from .a2a_request import field_of, history_length

MAX_PAGE_BYTES: Final = 1024 * 1024
"""The maximum size, in bytes, of the messages and artifacts on a page, unless its first task alone is larger. The bytes
are only copied, so a page takes one short turn of the event loop (decision 54).
"""
MAX_PAGE_SIZE: Final = 100
"""The maximum number of tasks on a page, from the specification."""
PAGE_SIZE: Final = 50
"""The default number of tasks on a page, from the specification."""

_LARGEST_NUMBER: Final = 2**63 - 1
"""The largest number of a task: SQLite's largest integer."""

_STATES: Final = frozenset(
    f"TASK_STATE_{state}"
    for state in (
        *("SUBMITTED", "WORKING", "COMPLETED", "FAILED", "CANCELED", "INPUT_REQUIRED", "REJECTED", "AUTH_REQUIRED"),
    )
)


class ListRequest(NamedTuple):
    """The parameters of ``ListTasks``."""

    context_id: str | None
    state: str | None
    changed_after: float | None
    """A Unix time in seconds."""
    before: tuple[float, int] | None
    """The time and number of the previous page's last task."""
    page_size: int
    history_length: int | None
    artifacts: bool


def read_list(params: Mapping[str, Any]) -> ListRequest:
    """Reads the parameters of ``ListTasks``.

    Raises:
        A2AError: a parameter is invalid.
    """
    state = _text(params, "status")
    if state is not None and state not in _STATES:
        raise invalid_field("status", f"must be one of {', '.join(sorted(_STATES))}")
    size = field_of(params, "pageSize")
    if size is not None and (not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= MAX_PAGE_SIZE):
        raise invalid_field("pageSize", f"must be a number from 1 to {MAX_PAGE_SIZE}")
    artifacts = field_of(params, "includeArtifacts")
    if artifacts is not None and not isinstance(artifacts, bool):
        raise invalid_field("includeArtifacts", "must be true or false")
    token = _text(params, "pageToken")
    return ListRequest(
        context_id=_text(params, "contextId"),
        state=None if state == "TASK_STATE_UNSPECIFIED" else state,
        changed_after=_time(params),
        before=None if token is None else _read_token(token),
        page_size=size or PAGE_SIZE,
        history_length=history_length(params, ""),
        artifacts=bool(artifacts),
    )


def page_token(changed_at: float, number: int) -> str:
    """The token of the page after a task."""
    return base64.urlsafe_b64encode(f"{changed_at!r} {number}".encode()).decode()


def _read_token(token: str) -> tuple[float, int]:
    try:
        first, second = base64.urlsafe_b64decode(token).decode().split(" ")
        changed_at, number = float(first), int(second)
    except (ValueError, binascii.Error):
        raise _invalid_token() from None
    if not math.isfinite(changed_at) or not 0 <= number <= _LARGEST_NUMBER:
        raise _invalid_token()
    return changed_at, number


def _invalid_token() -> A2AError:
    return invalid_field("pageToken", "is not from an earlier page; omit it for the first page")


def _time(params: Mapping[str, Any]) -> float | None:
    text = _text(params, "statusTimestampAfter")
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise invalid_field("statusTimestampAfter", "must be a time such as 2026-11-23T15:04:05.123Z") from None


def _text(params: Mapping[str, Any], name: str) -> str | None:
    value = field_of(params, name)
    if value is not None and not isinstance(value, str):
        raise invalid_field(name, "must be text")
    return value or None
