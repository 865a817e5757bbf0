"""How a call ended, as the answer that its caller gets. Pure, but for the log lines of a tool's own failures."""

import traceback
from copy import copy

import msgspec
import structlog
from msgspec.structs import replace

from ...protocol.error_codes import (
    CallCancelledError,
    CallError,
    CallTimeoutError,
    Executed,
    OutcomeUnknownError,
    ResultTooLargeError,
    ServiceUnavailableError,
    ToolExecutionError,
)
from ...protocol.tool_call import Json, Metadata, Timings, ToolResult, decode_result
from ...store import StoredCall
from .running_call import EndReason, RunningCall, UsageMeter

_log = structlog.get_logger("toold.dispatch")
_SHOWN_CHARS = 300


def metadata_of(running: RunningCall, now: float) -> Metadata:
    """The call's times, provider, tokens and cost as they stand at the instant ``now``, its children's included."""
    meter = running.meter if running.family is None else _with_children(running.meter, running.family.meter)
    return _metadata(meter, _ms(now - running.started), running.shaping)


def without_children(running: RunningCall, result: ToolResult) -> ToolResult:
    """The result as it is recorded: its children are recorded too, and what they used is to be counted once."""
    if running.family is None:
        return result
    return replace(result, metadata=_metadata(running.meter, result.metadata.latency_ms, running.shaping))


def _metadata(meter: UsageMeter, latency_ms: float, shaping: dict[str, Json] | None) -> Metadata:
    timings = Timings(_ms(meter.queue_s), _ms(meter.tool_s), _ms(meter.provider_s))
    if meter.provider is None:
        return Metadata(latency_ms, timings, shaping=shaping)
    return Metadata(
        latency_ms,
        timings,
        provider=meter.provider,
        model=meter.model,
        usage=meter.usage,
        cost=meter.cost,
        simulated=meter.simulated or None,
        chosen_because=meter.chosen_because,
        provider_calls=meter.provider_calls,
        usage_by_model=meter.spent if len(meter.spent) > 1 else (),
        shaping=shaping,
    )


def _with_children(own: UsageMeter, children: UsageMeter) -> UsageMeter:
    together = copy(own)
    together.by_model = dict(own.by_model or {})
    together.add(children)
    return together


def replayed(result: ToolResult) -> ToolResult:
    """The stored result of a call that is done, marked as such."""
    return replace(result, metadata=replace(result.metadata, replayed=True))


def failed(running: RunningCall, error: CallError, now: float) -> ToolResult:
    """The answer that carries ``error``."""
    tool_error = error.to_tool_error(repeatable=running.tool.repeatable)
    if running.tool.mask is not None:
        tool_error = running.tool.mask.error(tool_error)
    return ToolResult(metadata_of(running, now), error=tool_error)


def of_exception(running: RunningCall, error: BaseException) -> CallError:
    """The tool raised. Where it was told to end, that is why, whatever it made of it but what it says was done."""
    if running.ended_by is None:
        return error if isinstance(error, CallError) else tool_failed(running, error)
    ended = cut_off(running)
    if not (isinstance(error, CallCancelledError) and error.details):
        return ended
    message = f"{ended.message} {error.message}"
    return type(ended)(message, executed=ended.executed, transient=ended.transient, details=error.details)


def timed_out(running: RunningCall) -> CallTimeoutError:
    """The call's own deadline passed: while it waited (nothing was done) or while it ran."""
    seconds = running.timeout_ms / 1000
    if running.repeated:
        message = f"The call was made before, and how it ended could not be looked up within {seconds:g} s."
        return CallTimeoutError(message)
    if not running.running:
        message = f"The call waited {seconds:g} s for its turn and was not started."
        return CallTimeoutError(message, executed="no")
    own = "; a larger timeout_ms gives it longer"
    longer = own if running.parent is None else ", as long as the call that made it gave it"
    return CallTimeoutError(f"The call was not done within its {seconds:g} s{longer}.")


def cut_off(running: RunningCall) -> CallError:
    """Somebody or something ended the call: ``running.ended_by`` says who."""
    if running.ended_by is EndReason.DEADLINE:
        return timed_out(running)
    if running.goes_on:
        return ServiceUnavailableError("The daemon goes down; the call goes on at its next start.", executed="maybe")
    may_be_done = running.running or running.repeated
    executed: Executed = "maybe" if may_be_done else "no"
    if running.ended_by is EndReason.CALLER:
        return CallCancelledError("The call was cancelled as its caller asked.", executed=executed)
    if running.ended_by is EndReason.OPERATOR:
        return CallCancelledError("The call was cancelled by the daemon's operator.", executed=executed)
    if running.ended_by is EndReason.PARENT:
        return CallCancelledError("The call was cancelled by the call that made it.", executed=executed)
    if running.ended_by is EndReason.DISCONNECT:
        return CallCancelledError("The call was cancelled because its connection ended.", executed=executed)
    if running.tool.local or not may_be_done:
        return ServiceUnavailableError("The daemon stopped before the call was done; send it again.", executed="no")
    return OutcomeUnknownError("The daemon stopped while the call ran; look whether it had its effect.")


def tool_failed(running: RunningCall, error: BaseException) -> ToolExecutionError:
    """A tool raised what is no ``CallError``. The caller learns its kind alone: the text may tell too much."""
    frame = traceback.extract_tb(error.__traceback__)[-1] if error.__traceback__ else None
    place = f"{frame.filename}:{frame.lineno}" if frame else "?"
    _log.error("tool failed", tool=running.tool.name, error=_shown(error), at=place)
    _log.debug("tool failed, in full", exc_info=error)
    return ToolExecutionError(
        f"The tool {running.tool.name} failed with {type(error).__name__}; the daemon's log has the cause."
    )


def _shown(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:_SHOWN_CHARS]
    except Exception:  # noqa: BLE001 - an exception's text is the tool's code too
        return f"{type(error).__name__}, whose text cannot be had"


def too_large(size: int, limit: int, more: str = "") -> ResultTooLargeError:
    """The rendered answer does not fit into a frame, and ``more`` there is to say of it."""
    end = f", and {more} Ask for less at a time." if more else "; ask for less at a time."
    return ResultTooLargeError(f"The answer has {size} bytes and a frame takes {limit}{end}")


def not_serialisable(running: RunningCall, error: Exception) -> ToolExecutionError:
    """The tool returned what JSON cannot hold."""
    _log.error("tool returned no JSON", tool=running.tool.name, error=str(error)[:_SHOWN_CHARS])
    message = f"The tool {running.tool.name} returned what cannot be written as JSON: {error}"[:_SHOWN_CHARS]
    return ToolExecutionError(message, executed="yes")


def _ms(seconds: float) -> float:
    """To the microsecond; half as long as ``round`` takes."""
    return int(seconds * 1e6) / 1e3


def stored_result(call: StoredCall) -> ToolResult | None:
    """The result of a persisted call; None if it has none, or if it cannot be decoded."""
    if call.result is None:
        return None
    try:
        return decode_result(call.result)
    except msgspec.DecodeError as error:
        _log.error("stored result cannot be decoded", tool=call.tool, reason=str(error))
        return None
