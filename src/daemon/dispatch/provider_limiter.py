"""Limits requests to one provider: permits, circuit breaker, and SDK calls that outlive their caller."""

import asyncio
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from ...fairness import PermitOf, Permits, RunPermit
from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ServiceUnavailableError
from ...providers import BreakerState, CircuitBreaker, Provider, count_sdk_retries, counts_against_vendor
from ...tools import VendorOperation
from .usage_meter import UsageMeter
from .vendor_admission import VendorAdmission

T = TypeVar("T")

_MIN_ATTEMPT_S = 0.005
"""The minimum remaining time of an attempt: with less, it could only time out."""


class ProviderLimiter:
    """The permits and the circuit breaker of one provider.

    A separate task holds the provider's permit. A caller that is cancelled or times out is answered at once; the
    permit is released when the SDK returns, since a thread cannot be interrupted.
    """

    def __init__(self, provider: Provider, limit: int, *, on_error: Callable[[str, str], None]) -> None:
        self.provider = provider
        self.permits = Permits(provider.name, limit)
        self._breaker = CircuitBreaker()
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()
        self._abandoned = 0
        self.asked = asyncio.Event()
        """Set by the first request."""

    def __repr__(self) -> str:
        return f"<ProviderLimiter {self.permits!r} abandoned={self._abandoned}>"

    @property
    def abandoned(self) -> int:
        """SDK calls that are still running although their caller has ended."""
        return self._abandoned

    @property
    def state(self) -> BreakerState:
        """``closed``: requests pass; ``open``: they are refused while the vendor fails; ``half-open``: one probe."""
        return self._breaker.state(time.monotonic())

    async def ask(
        self,
        operation: VendorOperation[T],
        *,
        deadline: float,
        permit: RunPermit,
        meter: UsageMeter,
        ended: Callable[[], bool],
        admission: VendorAdmission | None = None,
    ) -> T:
        """Ask the provider once; ``deadline`` is a time of the loop's clock. While the request waits for the provider's
        permit, the call's own ``permit`` is released, so that calls of one vendor do not delay others. Once the call
        has ``ended``, nothing is sent. ``admission`` is taken after this daemon's permit, if several nodes share
        limits.

        Raises:
            CallError: as raised by ``operation``; ServiceUnavailableError at once while the circuit breaker is open.
        """
        requested_at = time.monotonic()
        self.asked.set()
        if self._breaker.state(requested_at) == "open":  # before the wait for a permit
            self._admit(requested_at)
        granted = asyncio.Event()
        place = self.permits.of(permit.principal, permit.session_id)
        work = asyncio.create_task(self._ask_with_permit(place, operation, deadline, meter, granted, ended, admission))
        self._tasks.add(work)
        work.add_done_callback(self._done)
        try:
            await asyncio.sleep(0)  # the task takes a permit in its first step if one is free
            if admission is not None and admission.asking:
                await admission.tried.wait()
            if granted.is_set() or not permit.held:
                return await self._wait(work, granted, requested_at, meter)
            # Released until the answer has arrived: a call that held the provider's permit while it waited for a run
            # permit would leave the provider idle.
            async with permit.paused():
                return await self._wait(work, granted, requested_at, meter)
        except asyncio.CancelledError:
            if not work.done():
                self._abandon(work)
            raise

    async def _wait(self, work: asyncio.Task[T], granted: asyncio.Event, requested_at: float, meter: UsageMeter) -> T:
        """The task's result. Measures the time in the queue and at the provider, however the task ends."""
        started: float | None = None
        try:
            await granted.wait()
            started = time.monotonic()
            return await asyncio.shield(work)
        finally:
            now = time.monotonic()
            meter.queue_s += (started or now) - requested_at
            if started is not None:
                meter.provider_s += now - started

    async def close(self, timeout_s: float) -> None:
        """Cancel running requests, wait for them at most ``timeout_s`` seconds, and close the provider."""
        for work in self._tasks:
            if not work.cancelling():  # it was cancelled earlier, and waits for its thread
                work.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
        await self.provider.close()

    async def _ask_with_permit(
        self,
        place: PermitOf,
        operation: VendorOperation[T],
        deadline: float,
        meter: UsageMeter,
        granted: asyncio.Event,
        ended: Callable[[], bool],
        admission: VendorAdmission | None,
    ) -> T:
        try:
            async with place, admission or nullcontext():
                granted.set()
                if ended():  # the call ended in this iteration of the loop, and has not cancelled this task yet
                    raise asyncio.CancelledError
                return await self._ask(operation, deadline, meter)
        finally:
            granted.set()  # even if the request was refused

    async def _ask(self, operation: VendorOperation[T], deadline: float, meter: UsageMeter) -> T:
        timeout_s = deadline - time.monotonic()
        if timeout_s < _MIN_ATTEMPT_S:
            raise CallTimeoutError.content_free(
                "The deadline passed before the provider could be asked.", executed="no"
            )
        self._admit(time.monotonic())

        def count_request() -> None:
            meter.provider_calls += 1

        count_request()
        try:
            with count_sdk_retries(count_request):
                answer = await operation(timeout_s=timeout_s)
        except InvalidArgumentsError:
            meter.provider_calls -= 1
            self._breaker.record_cancelled(time.monotonic())  # rejected before it was sent
            raise
        except CallError as error:
            self._record_error(error, time.monotonic())
            raise
        except BaseException:
            self._breaker.record_cancelled(time.monotonic())
            raise
        self._breaker.record_success(time.monotonic())
        return answer

    def _admit(self, now: float) -> None:
        wait_s = self._breaker.admit(now)
        if wait_s is not None:
            raise ServiceUnavailableError.content_free(
                f"{self.provider.label} failed several times in a row; the next attempt is in {wait_s:.0f} s.",
                retry_after_ms=max(1, round(wait_s * 1000)),
            )

    def _record_error(self, error: CallError, now: float) -> None:
        self._on_error(self.provider.name, error.code)
        if counts_against_vendor(error):
            self._breaker.record_failure(now)
        else:
            self._breaker.record_success(now)

    def _abandon(self, work: asyncio.Task[Any]) -> None:
        self._abandoned += 1
        work.add_done_callback(self._returned)
        work.cancel()

    def _returned(self, _work: asyncio.Task[Any]) -> None:
        self._abandoned -= 1

    def _done(self, work: asyncio.Task[Any]) -> None:
        self._tasks.discard(work)
        if not work.cancelled():
            # Retrieved here, so that asyncio does not log it: if the caller ends in the same iteration of the loop in
            # which the work fails, it never retrieves the exception.
            work.exception()
