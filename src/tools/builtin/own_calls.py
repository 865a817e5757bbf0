"""``call_status``, ``call_result``, ``cancel_call``: a principal's calls by their ids, whichever session made them."""

from typing import Any

import msgspec
from pydantic import Field

from ...protocol.error_codes import NotFoundError, OutcomeUnknownError, ResultExpiredError
from ...protocol.tool_call import ToolResult
from ..call_info import CallInfo
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool

_SHOWN_ID_CHARS = 120


class CallArguments(Arguments):
    """Which call."""

    call_id: str = Field(min_length=1, max_length=1000, description="From an answer with detach, or from activity.")


@tool("call_status", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def call_status(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """Tell what a call of yours is at, by its id. It is waiting, running or ending, with its progress and the time
    left; or it has ended: done, failed, interrupted (a crash came between, and nobody knows its outcome) or expired
    (its result is not kept any more); unknown is what never was, is somebody else's, or is too long ago.
    """
    return _told(await context.look_up_call(arguments.call_id))


@tool("call_result", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def call_result(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """Get the result of a call of yours that was detached, or that another call made, by its id. It is `result`, or
    the `error` that the call ended with; while it is under way, what it is at.
    """
    known = await context.look_up_call(arguments.call_id)
    if known.under_way:
        return _told(known)
    if known.result is None:
        raise _without_result(known)
    return {**_told(known), **_end(known.result)}


@tool("cancel_call", read_only=False, open_world=False, idempotent=True, destructive=True)
async def cancel_call(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """End a call of yours by its id, with all that it makes. `cancelled` is false where it had ended, or was ending,
    before; `state` is then what it came to.
    """
    if context.cancel_call(arguments.call_id):
        return {"call_id": arguments.call_id, "cancelled": True}
    known = await context.look_up_call(arguments.call_id)
    if known.state == "unknown":
        raise _unknown(known)
    return {**_told(known), "cancelled": False}


def _told(known: CallInfo) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "call_id": known.id,
        "state": known.state,
        "tool": known.tool,
        "started_at": known.started_at,
        "left_s": None if known.left_s is None else round(known.left_s, 3),
        "progress": None if known.progress is None else msgspec.to_builtins(known.progress),
        "outcome": known.outcome,
    }
    return {name: value for name, value in plain.items() if value is not None}


def _end(result: ToolResult) -> dict[str, Any]:
    if result.error is not None:
        return {"error": msgspec.to_builtins(result.error)}
    # What is kept of an answer that was too large is where it lies, which looks as any data.
    return {"result": result.value, **({"spilled": True} if result.metadata.spilled else {})}


def _without_result(known: CallInfo) -> NotFoundError | ResultExpiredError | OutcomeUnknownError:
    if known.state == "unknown":
        return _unknown(known)
    if known.state == "interrupted":
        return OutcomeUnknownError("The daemon stopped unexpectedly while the call ran; check whether it took effect.")
    if known.state == "expired":
        return ResultExpiredError(
            "The call has ended, and its result was kept for its time, or until others took its room.", executed="yes"
        )
    return NotFoundError(
        f"The call {known.id[:_SHOWN_ID_CHARS]!r} ended with {known.outcome}. Its result went to whoever made it, "
        "and is not kept under this id: results of detached calls are, and those of calls that calls make, but for "
        "those of tools that only read and reach nobody, such as echo."
    )


def _unknown(known: CallInfo) -> NotFoundError:
    return NotFoundError(
        f"There is no call {known.id[:_SHOWN_ID_CHARS]!r} of yours, or it is too long ago; `activity` shows what runs "
        "and what ended last."
    )
