"""The answers of calls that were detached or paused, and so continue as another call."""

from collections.abc import Sequence
from typing import Any

import msgspec

from .input_request import InputRequest


def detached_answer(call_id: str) -> dict[str, Any]:
    """The answer of a call that created the detached call ``call_id``."""
    return {"call_id": call_id, "detached": True}


def paused_answer(call_id: str, requests: Sequence[InputRequest], expires_at: float) -> dict[str, Any]:
    """The answer of a call that waits, as ``call_id``, for decisions on requests. ``expires_at`` is a Unix time."""
    return {
        "paused": True,
        "call_id": call_id,
        "requests": msgspec.to_builtins(requests),
        "expires_at": expires_at,
    }
