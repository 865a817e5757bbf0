"""``call_status``, ``call_result`` and ``cancel_call``: a principal's calls by id, from any of its sessions."""

from typing import Any

import msgspec
from pydantic import Field

from ...protocol.error_codes import NotFoundError, OutcomeUnknownError, ResultExpiredError
from ...protocol.tool_call import ToolResult
from ..call_info import SHOWN_ID_CHARS, CallInfo, unknown_call
from ..orchestration_context import LookupContext
from ..tool import Arguments, tool


class CallArguments(Arguments):
    """The id of a call."""

    call_id: str = Field(
        min_length=1, max_length=1000, description="Call id, from the answer of a detached call, or from activity."
    )


@tool("call_status", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def call_status(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """Get the state of one of your calls: `waiting`, `running` or `ending`, with progress and remaining time; `paused`,
    with its requests, which agent_decide decides; or `done`, `failed`, `interrupted` (the daemon crashed; the outcome
    is unknown) or `expired` (the result was deleted). `unknown`: no such call, not yours, or too old.
    """
    return _summary(await context.look_up_call(arguments.call_id))


@tool("call_result", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def call_result(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """Get the `result` or the `error` of one of your detached calls or child calls. For a call that has not ended, get
    its state.
    """
    info = await context.look_up_call(arguments.call_id)
    if info.is_unfinished:
        return _summary(info)
    if info.result is None:
        raise _no_result(info)
    return {**_summary(info), **_result_fields(info.result)}


@tool("cancel_call", read_only=False, open_world=False, idempotent=True, destructive=True)
async def cancel_call(arguments: CallArguments, context: LookupContext) -> dict[str, Any]:
    """Cancel one of your calls and its child calls. `cancelled` is false if the call was already ending or had ended;
    `state` then says which.
    """
    if await context.cancel_call(arguments.call_id):
        return {"call_id": arguments.call_id, "cancelled": True}
    info = await context.look_up_call(arguments.call_id)
    if info.state == "unknown":
        raise unknown_call(info.id)
    return {**_summary(info), "cancelled": False}


def _summary(info: CallInfo) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "call_id": info.id,
        "state": info.state,
        "tool": info.tool,
        "started_at": info.started_at,
        "remaining_s": None if info.remaining_s is None else round(info.remaining_s, 3),
        "progress": None if info.progress is None else msgspec.to_builtins(info.progress),
        "outcome": info.outcome,
        "requests": msgspec.to_builtins(info.requests) or None,
        "expires_at": info.expires_at,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _result_fields(result: ToolResult) -> dict[str, Any]:
    if result.error is not None:
        return {"error": msgspec.to_builtins(result.error)}
    # A spilled result is only a handle, which looks like ordinary data; hence the flag.
    return {"result": result.value, **({"spilled": True} if result.metadata.spilled else {})}


def _no_result(info: CallInfo) -> NotFoundError | ResultExpiredError | OutcomeUnknownError:
    if info.state == "unknown":
        return unknown_call(info.id)
    if info.state == "interrupted":
        return OutcomeUnknownError("The daemon crashed while the call ran; check whether the call took effect.")
    if info.state == "expired":
        return ResultExpiredError(
            "The call has ended, and its result was deleted because of its age or the size limit.", executed="yes"
        )
    return NotFoundError(
        f"The call {info.id[:SHOWN_ID_CHARS]!r} ended with {info.outcome}. Its result was sent to its caller and is "
        "not stored under this id. Only results of detached calls and of child calls are stored, except those of "
        "local read-only tools such as echo."
    )
