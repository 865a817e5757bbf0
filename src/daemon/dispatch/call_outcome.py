"""Builds the result with which a call ends. Pure, except that it logs failures of tools."""

import time
import traceback
from collections.abc import Callable
from copy import copy
from functools import partial
from types import TracebackType

import msgspec
import structlog
from msgspec.structs import replace

from ...audit import error_summary
from ...protocol.error_codes import (
    CallCancelledError,
    CallError,
    CallTimeoutError,
    ErrorCode,
    Executed,
    OutcomeUnknownError,
    ResultTooLargeError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from ...protocol.json_pieces import LONG_BYTES
from ...protocol.tool_call import (
    ContentBlock,
    Json,
    Metadata,
    PartsOutcome,
    TextContent,
    Timings,
    ToolResult,
    decode_result,
)
from ...store import StoredCall
from ...tools import OWN_SOURCE, ToolCatalog, content, conversational_outputs, is_long, meta_of
from ..observability.logging_setup import exception_text
from ..off_loop import off_loop
from .call_phase import EndReason, JournalRecord
from .running_call import RunningCall
from .usage_meter import UsageMeter

_log = structlog.get_logger("toold.dispatch")
_SHOWN_CHARS = 300
_MAX_NOTICES = 200
"""The maximum number of notices in the texts of a session's answers; further notices are only in the metadata."""


def metadata_of(call: RunningCall, now: float) -> Metadata:
    """The call's times, provider, tokens and cost at the monotonic time ``now``, including its children's."""
    scope = call.child_scope
    if scope is None:
        return _metadata(call, call.meter, _ms(now - call.started))
    return _metadata(call, _with_children(call.meter, scope.meter), _ms(now - call.started), scope.parts)


def without_children(call: RunningCall, result: ToolResult) -> ToolResult:
    """The result to record: without the usage of its children, which have their own records."""
    if call.child_scope is None:
        return result
    metadata = _metadata(call, call.meter, result.metadata.latency_ms, result.metadata.parts)
    return replace(result, metadata=metadata)


def _metadata(call: RunningCall, meter: UsageMeter, latency_ms: float, parts: PartsOutcome | None = None) -> Metadata:
    timings = Timings(_ms(meter.queue_s), _ms(meter.tool_s), _ms(meter.provider_s) if meter.provider_s else 0.0)
    if meter.provider is None:
        return Metadata(
            latency_ms,
            timings,
            argument_notices=call.argument_notices,
            shaping=call.shaping,
            parts=parts,
            response=call.response,
        )
    return Metadata(
        latency_ms,
        timings,
        provider=meter.provider,
        model=meter.model,
        usage=meter.usage,
        cost=meter.cost,
        simulated=meter.simulated or None,
        model_choice_reason=meter.model_choice_reason,
        provider_calls=meter.provider_calls,
        usage_by_model=meter.usage_by_model if len(meter.usage_by_model) > 1 else (),
        argument_notices=call.argument_notices,
        shaping=call.shaping,
        parts=parts,
        response=call.response,
    )


def plain_outputs(
    call: RunningCall, returned: object
) -> tuple[tuple[ContentBlock, ...], Json | msgspec.UnsetType] | None:
    """The outputs that ``outputs_of`` would return, if they are the tool's unchanged text and not long; otherwise
    None."""
    if call.argument_notices or call.tool.conversational:
        return None
    if type(returned) is str and len(returned) <= LONG_BYTES and returned.isascii():  # the common case of `content`
        return (TextContent(returned),), msgspec.UNSET
    return None if is_long(returned) else content(returned, tool=call.tool.name)


async def outputs_of(
    call: RunningCall, returned: object, catalog: Callable[[], ToolCatalog]
) -> tuple[tuple[ContentBlock, ...], Json | msgspec.UnsetType]:
    """The outputs and the data that a call's tool has returned; for a client's call, after ``presented``."""
    call.long_result = is_long(returned)
    if call.long_result:
        outputs, structured = await off_loop(partial(content, returned, tool=call.tool.name))
    else:
        outputs, structured = content(returned, tool=call.tool.name)
    if call.parent is None and (call.argument_notices or call.tool.conversational):
        present = partial(presented, call, outputs, structured, catalog())
        outputs = await off_loop(present) if call.long_result else present()
    return outputs, structured


def presented(
    call: RunningCall, outputs: tuple[ContentBlock, ...], structured: Json | msgspec.UnsetType, catalog: ToolCatalog
) -> tuple[ContentBlock, ...]:
    """The outputs of a client's call: in the session's form if the tool has a conversation, followed by new notices."""
    session = call.session
    if call.tool.conversational:
        form = catalog.result_text(session.toolset, session.result_text, former=session.former)
        outputs = conversational_outputs(call.tool.name, outputs, structured, form)
    return with_notices(call, outputs) if call.argument_notices else outputs


def with_notices(call: RunningCall, outputs: tuple[ContentBlock, ...]) -> tuple[ContentBlock, ...]:
    """The outputs, and a text with the notices about arguments that are new to this session.

    The text comes last, because some clients read only the first text, which may be JSON.
    """
    noticed = call.session.noticed
    new = [notice for notice in call.argument_notices if notice not in noticed]
    if not new or len(noticed) >= _MAX_NOTICES:
        return outputs
    noticed.update(new)
    return (*outputs, TextContent(f"Note: {' '.join(new)}"))


def _with_children(own: UsageMeter, children: UsageMeter) -> UsageMeter:
    total = copy(own)
    total.by_model = dict(own.by_model or {})
    total.add(children)
    return total


def replayed(result: ToolResult) -> ToolResult:
    """A stored result, marked as replayed."""
    return replace(result, metadata=replace(result.metadata, replayed=True))


def failed(call: RunningCall, error: CallError, now: float) -> ToolResult:
    """The result that carries ``error``; a summary of the error is stored on the call, for the audit."""
    call.error_summary = error_summary(error)
    tool_error = error.to_tool_error(repeatable=call.tool.repeatable)
    if tool_error.executed == "maybe" and error.code is not ErrorCode.OUTCOME_UNKNOWN and _cannot_have_effects(call):
        tool_error = replace(tool_error, executed="no")
    outputs, structured = ((), msgspec.UNSET) if error.output is None else content(error.output, tool=call.tool.name)
    result = ToolResult(
        metadata_of(call, now), outputs, structured, tool_error, meta_of(error.output), typed=call.tool.typed
    )
    return result if call.mask is None else call.mask.result(result)


def _cannot_have_effects(call: RunningCall) -> bool:
    """Whether the call had no effect, regardless of the stage at which it ended: its tool is read-only, and made no
    request that a vendor bills.
    """
    return call.tool.annotations.read_only_hint and call.meter.provider_calls == 0


def refused(error: CallError, received: float, *, typed: bool | msgspec.UnsetType = msgspec.UNSET) -> ToolResult:
    """The result of a refused call that arrived at the monotonic time ``received``. ``typed`` is the attribute of its
    tool, if the tool exists.
    """
    latency_ms = round((time.monotonic() - received) * 1000, 3)
    return ToolResult(Metadata(latency_ms, Timings()), error=error.to_tool_error(), typed=typed)


def of_exception(call: RunningCall, error: BaseException) -> CallError:
    """The error for an exception of the tool. If the call was ending, its end reason decides, together with the error
    that the tool raised.
    """
    if call.end_reason is None:
        return error if isinstance(error, CallError) else tool_failed(call, error)
    end = cut_off(call)
    if not (isinstance(error, CallCancelledError) and error.details):
        return end
    message = f"{end.message} {error.message}"
    return type(end)(
        message, executed=end.executed, transient=end.transient, details=error.details, summary=end.summary
    )


def timed_out(call: RunningCall) -> CallTimeoutError:
    """The error for a call whose deadline passed, while it waited or while it ran."""
    seconds = call.timeout_ms / 1000
    if call.journal_record is JournalRecord.PREVIOUS_CALL:
        message = f"The answer of the earlier call with this request id could not be loaded within {seconds:g} s."
        return CallTimeoutError.content_free(message)
    if not call.entered:
        message = f"The call waited {seconds:g} s for its turn and was not started."
        return CallTimeoutError.content_free(message, executed="no")
    if _reached_no_vendor(call):
        message = f"The call waited for its turn at {call.meter.provider}, and {seconds:g} s passed; nothing was sent."
        return CallTimeoutError.content_free(message, executed="no")
    hint = "set a larger timeout_ms" if call.parent is None else "its parent call limits its time"
    return CallTimeoutError.content_free(f"The call did not finish within {seconds:g} s; {hint}.")


def _reached_no_vendor(call: RunningCall) -> bool:
    """Whether the call had no effect, because it waited for its vendor and nothing was sent.

    Nothing is sent after a call's end (``ProviderLimiter.ask``). A third-party tool may have had other effects before,
    unless it is read-only; the daemon's own tools that ask a vendor have effects only there.
    """
    meter, tool = call.meter, call.tool
    unsent = meter.provider is not None and meter.provider_calls == 0
    return unsent and (tool.annotations.read_only_hint or tool.source == OWN_SOURCE)


def cut_off(call: RunningCall) -> CallError:
    """The error for a call with an ``end_reason``."""
    if call.end_reason is EndReason.DEADLINE:
        return timed_out(call)
    if call.resumes:
        return ServiceUnavailableError.content_free(
            "The daemon is shutting down; the call resumes at its next start.", executed="maybe"
        )
    may_have_run = call.entered and not _reached_no_vendor(call)
    may_be_done = may_have_run or call.journal_record is JournalRecord.PREVIOUS_CALL
    executed: Executed = "maybe" if may_be_done else "no"
    if call.end_reason is EndReason.CALLER:
        return CallCancelledError.content_free("The call was cancelled by its caller.", executed=executed)
    if call.end_reason is EndReason.OPERATOR:
        return CallCancelledError.content_free("The call was cancelled by the operator.", executed=executed)
    if call.end_reason is EndReason.PARENT:
        return CallCancelledError.content_free("The call was cancelled by its parent call.", executed=executed)
    if call.end_reason is EndReason.DISCONNECT:
        return CallCancelledError.content_free(
            "The call was cancelled because its connection closed.", executed=executed
        )
    if call.tool.local or not may_be_done:
        return ServiceUnavailableError.content_free(
            "The daemon stopped before the call finished; send it again.", executed="no"
        )
    return OutcomeUnknownError.content_free("The daemon stopped while the call ran; check whether it took effect.")


def tool_failed(call: RunningCall, error: BaseException) -> ToolExecutionError:
    """The error for an exception other than a ``CallError``. The caller gets only its type: its text may be private.

    The log has its type, its place in the tool's own code and its traceback, and its text if content is logged.
    """
    place = _place_in(getattr(call.tool.function, "__module__", "").partition(".")[0], error.__traceback__)
    _log.error("tool failed", tool=call.tool.name, error=exception_text(error, _SHOWN_CHARS), at=place, exc_info=error)
    return ToolExecutionError.content_free(
        f"The tool {call.tool.name} failed with {type(error).__name__}; the daemon's log says where."
    )


def _place_in(package: str, trace: TracebackType | None) -> str:
    """The innermost line of the traceback in this top-level package, where the tool's author looks first; without such
    a line, the innermost line.
    """
    frames = list(traceback.walk_tb(trace))
    own = [step for step in frames if step[0].f_globals.get("__name__", "").partition(".")[0] == package]
    for frame, line in (own or frames)[-1:]:
        return f"{frame.f_code.co_filename}:{line}"
    return "?"


def too_large(size: int, limit: int, more: str = "") -> ResultTooLargeError:
    """The error for an answer that does not fit into a frame; ``more`` is a sentence to add."""
    message = f"The answer has {size} bytes, more than the {limit} of a frame; request less data."
    return ResultTooLargeError(f"{message} {more}" if more else message, summary=message)


def not_serialisable(call: RunningCall, error: Exception) -> ToolExecutionError:
    """The error for a result that cannot be written as JSON."""
    _log.error("tool result is not JSON", tool=call.tool.name, error=exception_text(error, _SHOWN_CHARS))
    message = f"The tool {call.tool.name} returned a value that cannot be written as JSON: {error}"[:_SHOWN_CHARS]
    return ToolExecutionError(message, executed="yes")


def _ms(seconds: float) -> float:
    """Milliseconds to the microsecond, in half the time of ``round``."""
    return int(seconds * 1e6) / 1e3


def text_bytes(result: ToolResult) -> int:
    """The size of a result's text in bytes of UTF-8, for a result that is never encoded."""
    texts = (block.text for block in result.outputs if isinstance(block, TextContent))
    return sum(len(text) if text.isascii() else len(text.encode()) for text in texts)


async def load_result(call: StoredCall) -> ToolResult | None:
    """``stored_result``, outside of the event loop if the result is long."""
    return await off_loop(stored_result, call) if len(call.result or b"") > LONG_BYTES else stored_result(call)


def stored_result(call: StoredCall) -> ToolResult | None:
    """The result of a persisted call; None if it has none, or if it cannot be decoded."""
    if call.result is None:
        return None
    try:
        return decode_result(call.result)
    except msgspec.DecodeError as error:
        _log.error("stored result cannot be decoded", tool=call.tool, reason=str(error))
        return None
