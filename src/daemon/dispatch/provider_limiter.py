"""The door to one provider: its permits, its circuit breaker, and work that outlives its caller."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ...protocol.error_codes import CallError, CallTimeoutError, InvalidArgumentsError, ServiceUnavailableError
from ...providers import BreakerState, CircuitBreaker, Provider, counts_against_vendor, told_of_repeats
from ...tools import VendorOperation
from .permits import Permits, RunPermit
from .usage_meter import UsageMeter

T = TypeVar("T")

_LEAST_S = 0.005
"""With less than this left no attempt is begun: it could only time out."""


class ProviderLimiter:
    """Takes requests to their provider, so many at once, for as long as the vendor's SDK really works on it.

    The provider's permit is held by a task of its own: when the caller is cancelled or runs out of time, it is
    answered at once, and the permit comes back when the SDK has let go (a thread cannot be interrupted).
    """

    def __init__(self, provider: Provider, limit: int, *, on_error: Callable[[str, str], None]) -> None:
        self.provider = provider
        self.permits = Permits(provider.name, limit)
        self._breaker = CircuitBreaker()
        self._on_error = on_error
        self._work: set[asyncio.Task[Any]] = set()
        self._abandoned = 0

    def __repr__(self) -> str:
        return f"<ProviderLimiter {self.permits!r} abandoned={self._abandoned}>"

    @property
    def abandoned(self) -> int:
        """SDK calls whose caller has gone and which have not returned yet."""
        return self._abandoned

    @property
    def state(self) -> BreakerState:
        """Whether the vendor is asked (``closed``), not, since it keeps failing (``open``), or is being tried again."""
        return self._breaker.state(time.monotonic())

    async def ask(self, operation: VendorOperation[T], *, deadline: float, permit: RunPermit, meter: UsageMeter) -> T:
        """Ask the provider once; ``deadline`` is an instant of the loop's clock. While it waits for the provider's
        permit the call's own ``permit`` is lent back, so that those who wait for one vendor delay nobody else.

        Raises:
            CallError: as ``operation``; ServiceUnavailableError at once while the vendor keeps failing.
        """
        asked = time.monotonic()
        if self._breaker.state(asked) == "open":  # no need to stand in line for it
            self._admit(asked)
        granted = asyncio.Event()
        work = asyncio.create_task(self._hold_and_ask(operation, deadline, meter, granted))
        self._work.add(work)
        work.add_done_callback(self._work.discard)
        try:
            await asyncio.sleep(0)  # the task takes a free permit in its first step
            if granted.is_set() or not permit.held:
                return await self._wait(work, granted, asked, meter)
            # Lent back until the answer is there: who stood in line for a run permit while holding the provider's
            # would keep the provider idle.
            async with permit.paused():
                return await self._wait(work, granted, asked, meter)
        except asyncio.CancelledError:
            if not work.done():
                self._abandon(work)
            raise

    async def _wait(self, work: asyncio.Task[T], granted: asyncio.Event, asked: float, meter: UsageMeter) -> T:
        """The work's result; how long it stood in line, and then was at the provider, is booked however it ends."""
        began: float | None = None
        try:
            await granted.wait()
            began = time.monotonic()
            return await asyncio.shield(work)
        finally:
            now = time.monotonic()
            meter.queue_s += (began or now) - asked
            if began is not None:
                meter.provider_s += now - began

    async def close(self, timeout_s: float) -> None:
        """Cancel what is still at work and wait ``timeout_s`` seconds for it, no longer; close the provider."""
        for work in self._work:
            if not work.cancelling():  # it was told once, and waits for its thread
                work.cancel()
        if self._work:
            await asyncio.wait(self._work, timeout=timeout_s)
        await self.provider.close()

    async def _hold_and_ask(
        self, operation: VendorOperation[T], deadline: float, meter: UsageMeter, granted: asyncio.Event
    ) -> T:
        async with self.permits:
            granted.set()
            return await self._ask(operation, deadline, meter)

    async def _ask(self, operation: VendorOperation[T], deadline: float, meter: UsageMeter) -> T:
        timeout_s = deadline - time.monotonic()
        if timeout_s < _LEAST_S:
            raise CallTimeoutError("The time was up before the provider could be asked.", executed="no")
        self._admit(time.monotonic())

        def count() -> None:
            meter.provider_calls += 1

        count()
        try:
            with told_of_repeats(count):
                answer = await operation(timeout_s=timeout_s)
        except InvalidArgumentsError:
            meter.provider_calls -= 1
            self._breaker.record_cancelled(time.monotonic())  # refused before the vendor was asked
            raise
        except CallError as error:
            self._book(error, time.monotonic())
            raise
        except BaseException:
            self._breaker.record_cancelled(time.monotonic())
            raise
        self._breaker.record_success(time.monotonic())
        return answer

    def _admit(self, now: float) -> None:
        wait_s = self._breaker.admit(now)
        if wait_s is not None:
            raise ServiceUnavailableError(
                f"{self.provider.label} failed several times in a row; it is asked again in {wait_s:.0f} s.",
                retry_after_ms=max(1, round(wait_s * 1000)),
            )

    def _book(self, error: CallError, now: float) -> None:
        self._on_error(self.provider.name, error.code)
        if counts_against_vendor(error):
            self._breaker.record_failure(now)
        else:
            self._breaker.record_success(now)

    def _abandon(self, work: asyncio.Task[Any]) -> None:
        self._abandoned += 1
        work.add_done_callback(self._returned)
        work.cancel()

    def _returned(self, work: asyncio.Task[Any]) -> None:
        self._abandoned -= 1
        if not work.cancelled():
            work.exception()  # looked at, so that asyncio does not report it as never retrieved
