"""Rate limits of sources: one continuously refilled token bucket per source and principal, first come first served.

``throttled-py`` counts the tokens (GCRA). This module adds a queue (decision 41), so that a new call knows at once how
long it would wait.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ...protocol.error_codes import RateLimitedError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import SharedLimitsPort, StoreError
from ...tools import RateState

if TYPE_CHECKING:
    from throttled.asyncio import Throttled

_KEY: Final = "calls"
_ROUNDING: Final = 1e-6
"""The rounding error of summed intervals, in tokens."""
_LEAST_SLEEP_S: Final = 0.001
"""The resolution of the loop's timers; a shorter sleep could end too early."""


class SourceRate(Protocol):
    """The calls per minute on average, and the burst after a pause."""

    @property
    def per_minute(self) -> int: ...

    @property
    def burst(self) -> int: ...


class RateLimits:
    """The token buckets of all sources with a rate limit. ``rate_of`` returns a source's current rate, or None.

    With ``shared``, all nodes share one bucket. A call that waits then has already reserved its slot; if it ends while
    it waits, the slot stays used.
    """

    def __init__(self, rate_of: Callable[[str], SourceRate | None], shared: SharedLimitsPort | None = None) -> None:
        self._rate_of = rate_of
        self._shared = shared
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def __repr__(self) -> str:
        return f"<RateLimits buckets={len(self._buckets)}>"

    def applies_to(self, source: str) -> bool:
        """Whether a source has a rate limit."""
        return self._rate_of(source) is not None

    async def acquire(self, source: str, principal: Principal, deadline: float) -> None:
        """Wait for a token of the source for the principal; ``deadline`` is a time of the loop's clock.

        Raises:
            RateLimitedError: at once, if the token would come after the deadline.
            ServiceUnavailableError: the database of the nodes does not answer.
        """
        rate = self._rate_of(source)
        if rate is None:
            return
        if self._shared is not None:
            await _reserve(self._shared, source, principal, rate, deadline)
            return
        bucket = self._buckets.get((source, principal.name))
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[source, principal.name] = _Bucket(source, rate)
        await bucket.acquire(deadline)

    async def state(self, source: str, principal: Principal) -> RateState | None:
        """The state of a source's rate limit for a principal; None if the source has none."""
        rate = self._rate_of(source)
        if rate is None:
            return None
        if self._shared is not None:
            return await _shared_state(self._shared, source, principal, rate)
        bucket = self._buckets.get((source, principal.name))
        full_in_s, waiting = (0.0, 0) if bucket is None or bucket.rate != rate else await bucket.use()
        return rate_state(rate, full_in_s, waiting)


async def _reserve(
    shared: SharedLimitsPort, source: str, principal: Principal, rate: SourceRate, deadline: float
) -> None:
    """Reserves the next slot of all nodes, and waits for it."""
    interval_s, left_s = 60.0 / rate.per_minute, max(0.0, deadline - time.monotonic())
    try:
        slot = await shared.reserve_slot(
            source, principal.name, interval_s=interval_s, burst=rate.burst, max_wait_s=left_s
        )
    except StoreError as error:
        raise ServiceUnavailableError.content_free(
            f"The call cannot be counted for the rate limit of source {source} ({error.reason}); try again later.",
            executed="no",
        ) from None
    if not slot.reserved:
        raise _too_many(source, rate, slot.wait_s)
    if slot.wait_s > 0:
        await asyncio.sleep(slot.wait_s)


async def _shared_state(
    shared: SharedLimitsPort, source: str, principal: Principal, rate: SourceRate
) -> RateState | None:
    try:
        slot = await shared.reserve_slot(
            source, principal.name, interval_s=60.0 / rate.per_minute, burst=rate.burst, max_wait_s=-1.0
        )
    except StoreError:
        return None  # the call reports the reason
    return rate_state(rate, slot.full_in_s, 0)


class _Bucket:
    """The tokens of one principal at one source."""

    def __init__(self, source: str, rate: SourceRate) -> None:
        self.rate = rate
        self._source = source
        self._interval_s = 60.0 / rate.per_minute
        self._limiter: Throttled | None = None
        self._opening = asyncio.Lock()
        # The first call in the queue holds this lock; the others wait for it in order of arrival.
        self._queue = asyncio.Lock()
        self._waiting = 0

    async def acquire(self, deadline: float) -> None:
        limiter = self._limiter or await self._opened()
        wait_s = expected_wait_s(
            (await limiter.peek(_KEY)).reset_after, self._waiting, interval_s=self._interval_s, burst=self.rate.burst
        )
        if time.monotonic() + wait_s > deadline:
            raise _too_many(self._source, self.rate, wait_s)
        self._waiting += 1
        try:
            async with self._queue:
                while (result := await limiter.limit(_KEY)).limited:  # noqa: ASYNC110 - nothing sets an event when time passes
                    await asyncio.sleep(max(_LEAST_SLEEP_S, result.state.retry_after))
        finally:
            self._waiting -= 1

    async def use(self) -> tuple[float, int]:
        """The seconds until the bucket is full if it is not used, and the number of waiting calls."""
        full_in_s = 0.0 if self._limiter is None else (await self._limiter.peek(_KEY)).reset_after
        return full_in_s, self._waiting

    async def _opened(self) -> "Throttled":
        async with self._opening:  # one limiter for all callers, because each limiter has its own tokens
            if self._limiter is None:
                # Imported in a thread, since it takes 0.1 s, and only if a source has a rate.
                self._limiter = await asyncio.to_thread(_limiter, self.rate)
            return self._limiter


def expected_wait_s(full_in_s: float, waiting: int, *, interval_s: float, burst: int) -> float:
    """How long a new call waits behind ``waiting`` others. The bucket would be full in ``full_in_s`` seconds if it were
    not used, and gets a token every ``interval_s`` seconds.
    """
    # The library's ``retry_after`` of a peek is one token too short (3.5.0).
    return max(0.0, full_in_s + (waiting + 1 - burst) * interval_s)


def rate_state(rate: SourceRate, full_in_s: float, waiting: int) -> RateState:
    """The state of a bucket that would be full in ``full_in_s`` seconds if not used, with ``waiting`` waiting calls."""
    interval_s = 60.0 / rate.per_minute
    used = math.ceil(full_in_s / interval_s - _ROUNDING) + waiting
    wait_s = expected_wait_s(full_in_s, waiting, interval_s=interval_s, burst=rate.burst)
    return RateState(rate.per_minute, rate.burst, max(0, rate.burst - used), math.ceil(wait_s * 1000))


def _limiter(rate: SourceRate) -> "Throttled":
    from throttled.asyncio import (  # noqa: PLC0415 - see the caller
        MemoryStore,
        RateLimiterType,
        Throttled,
        rate_limiter,
    )

    quota = rate_limiter.per_min(rate.per_minute, burst=rate.burst)
    return Throttled(using=RateLimiterType.GCRA.value, quota=quota, store=MemoryStore())


def _too_many(source: str, rate: SourceRate, wait_s: float) -> RateLimitedError:
    return RateLimitedError.content_free(
        f"The rate limit of source {source} is {rate.per_minute} calls per minute; the next slot is in {wait_s:.1f} s, "
        "after this call's deadline. Retry then.",
        retry_after_ms=math.ceil(wait_s * 1000),
    )
