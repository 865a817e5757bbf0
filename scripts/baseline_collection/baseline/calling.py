"""One measured call through the client library, recorded whether it succeeds or fails."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
from toold.client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from toold.protocol.error_codes import CallError, ErrorCode
from toold.protocol.frames import CallToolRes
from toold.protocol.tool_call import Json, Metadata

from .plan import Turn
from .record import Call, CallTimings, Money, Tokens

CONNECTION_LOST: Final = "CONNECTION_LOST"


class Clock:
    """Start times of calls, in seconds since the run began, by a monotonic clock.

    A resumed run continues from the time of day, so that the pause is visible.
    """

    def __init__(self, started: str) -> None:
        self._started = datetime.fromisoformat(started)
        since = (datetime.now(UTC) - self._started).total_seconds()
        self._zero = time.perf_counter() - since

    def offset_s(self, instant: float) -> float:
        """Converts an instant of ``time.perf_counter``."""
        return instant - self._zero

    def timestamp(self, instant: float) -> str:
        """Converts an instant of ``time.perf_counter`` to ISO 8601 in UTC."""
        return (self._started + timedelta(seconds=self.offset_s(instant))).isoformat(timespec="microseconds")


class Caller:
    """Makes the calls of one run and passes each one to ``keep`` when it ends."""

    def __init__(self, clock: Clock, segment: int, timeout_s: float | None, keep: Callable[[Call], None]) -> None:
        self._clock = clock
        self._segment = segment
        self._timeout_s = timeout_s
        self._keep = keep

    async def call(
        self,
        client: MCPWebSocketClient,
        turn: Turn,
        iteration: int,
        arguments: dict[str, Any],
        due: float | None = None,
    ) -> Json:
        """Make the call, record it, and return its ``structured`` result, or None if it failed.

        ``due`` is the instant at which it should start, by ``time.perf_counter``; None: now.

        Raises:
            ConnectionFailedError: the call could not be sent, so it was not made.
            RecordError: the call was made and cannot be recorded.
        """
        if (
            not client.connected and not await client.connect()
        ):  # an earlier call recorded the disconnect as its failure
            raise ConnectionFailedError(str(client.last_error), retryable=True)
        sent = time.perf_counter()
        began = sent if due is None else due
        answer: CallToolRes | CallError | ConnectionLostError
        try:
            answer = await client.answer(turn.tool, arguments, timeout=self._timeout_s, auto_reconnect=False)
        except (CallError, ConnectionLostError) as error:
            answer = error
        ended = time.perf_counter()
        self._keep(
            Call(
                tool_name=turn.tool,
                iteration=iteration,
                load=turn.load,
                round=turn.round,
                segment=self._segment,
                timestamp=self._clock.timestamp(began),
                offset_s=round(self._clock.offset_s(began), 6),
                latency_ms=round((ended - began) * 1000, 4),
                late_ms=round((sent - began) * 1000, 4),
                **fields_of(answer),
            )
        )
        return answer.structured if isinstance(answer, CallToolRes) and answer.structured is not msgspec.UNSET else None


def fields_of(answer: CallToolRes | CallError | ConnectionLostError) -> dict[str, Any]:
    """The fields of a call that depend on its answer, or on the error in place of one."""
    if not isinstance(answer, CallToolRes):
        code = answer.code.value if isinstance(answer, CallError) else CONNECTION_LOST
        return {"status": "error", "error_code": code, "error": str(answer)}
    reported = _reported_by(answer.metadata)
    if answer.error is not None:
        return {"status": "error", "error_code": answer.error.code, "error": answer.error.message, **reported}
    if failed := _failed_within(answer.structured):
        code, message = failed
        return {"status": "error", "error_code": code, "error": message, **reported}
    return {"status": "success", "output_bytes": len(msgspec.json.encode(answer.outputs)), **reported}


def _failed_within(structured: object) -> tuple[str, str] | None:
    """Code and message of the failure within a pipeline or batch that returned a result; None if nothing failed."""
    match structured:
        case {"success": False, "stop_reason": str(why), "step_results": dict(steps)}:
            codes = [step["error"]["code"] for step in steps.values() if not step["success"] and "error" in step]
            return codes[-1] if codes else ErrorCode.TOOL_EXECUTION_ERROR.value, why
        case {"total": int(total), "succeeded": int(_), "errors": [{"index": index, "error": error}, *others]}:
            return error["code"], f"{len(others) + 1} of {total} items failed; item {index}: {error['message']}"
    return None


def _reported_by(metadata: Metadata) -> dict[str, Any]:
    timings, usage, cost = metadata.timings, metadata.usage, metadata.cost
    return {
        "timings": CallTimings(
            daemon_ms=metadata.latency_ms,
            queue_ms=timings.queue_ms,
            tool_ms=timings.tool_ms,
            provider_ms=timings.provider_ms,
        ),
        "tokens": Tokens(input=usage.input_tokens, output=usage.output_tokens) if usage else None,
        "cost": Money(amount=cost.amount, currency=cost.currency) if cost else None,
        "model": metadata.model,
        "simulated": bool(metadata.simulated),
    }
