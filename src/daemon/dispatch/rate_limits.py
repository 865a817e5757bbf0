"""Rate limits of sources: a token bucket a source and principal, smoothly refilled, first come first served.

What counts tokens is ``throttled-py`` (GCRA). Here is the line before it (decision 41): who waits is known, so that
whoever arrives learns at once how long it would take.
"""

import asyncio
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from ...protocol.error_codes import RateLimitedError
from ...protocol.tool_call import Principal

if TYPE_CHECKING:
    from throttled.asyncio import Throttled

_KEY: Final = "calls"
_LEAST_SLEEP_S: Final = 0.001
"""The loop's timers are no finer, and must not be too early."""


class SourceRate(Protocol):
    """So many calls a minute over time, and so many at once after a pause."""

    @property
    def per_minute(self) -> int: ...

    @property
    def burst(self) -> int: ...


class RateLimits:
    """The buckets of all sources that have a rate. ``rate_of`` says which one a source has now; None: none."""

    def __init__(self, rate_of: Callable[[str], SourceRate | None]) -> None:
        self._rate_of = rate_of
        self._buckets: dict[tuple[str, str], _Bucket] = {}

    def __repr__(self) -> str:
        return f"<RateLimits buckets={len(self._buckets)}>"

    def applies_to(self, source: str) -> bool:
        """Whether the calls of a source are bounded."""
        return self._rate_of(source) is not None

    async def acquire(self, source: str, principal: Principal, deadline: float) -> None:
        """Wait for a token of the source for the principal; ``deadline`` is an instant of the loop's clock.

        Raises:
            RateLimitedError: at once, where it would take longer than that.
        """
        rate = self._rate_of(source)
        if rate is None:
            return
        bucket = self._buckets.get((source, principal.name))
        if bucket is None or bucket.rate != rate:
            bucket = self._buckets[source, principal.name] = _Bucket(source, rate)
        await bucket.take(deadline)


class _Bucket:
    """The tokens of one principal at one source."""

    def __init__(self, source: str, rate: SourceRate) -> None:
        self.rate = rate
        self._source = source
        self._each_s = 60.0 / rate.per_minute
        self._limiter: Throttled | None = None
        self._opening = asyncio.Lock()
        # Whoever has it is the first in line; the others wait for it in the order in which they came.
        self._line = asyncio.Lock()
        self._in_line = 0

    async def take(self, deadline: float) -> None:
        limiter = self._limiter or await self._opened()
        wait_s = expected_wait_s(
            (await limiter.peek(_KEY)).reset_after, self._in_line, each_s=self._each_s, burst=self.rate.burst
        )
        if time.monotonic() + wait_s > deadline:
            raise _too_many(self._source, self.rate, wait_s)
        self._in_line += 1
        try:
            async with self._line:
                while (result := await limiter.limit(_KEY)).limited:  # noqa: ASYNC110 - nothing sets an event when time passes
                    await asyncio.sleep(max(_LEAST_SLEEP_S, result.state.retry_after))
        finally:
            self._in_line -= 1

    async def _opened(self) -> "Throttled":
        async with self._opening:  # one for all who come meanwhile: each would have tokens of its own
            if self._limiter is None:
                # Its import takes a tenth of a second: not on the loop, and not where no source has a rate.
                self._limiter = await asyncio.to_thread(_limiter, self.rate)
            return self._limiter


def expected_wait_s(full_in_s: float, in_line: int, *, each_s: float, burst: int) -> float:
    """How long whoever arrives waits behind ``in_line`` others, where the bucket is full again in ``full_in_s``, if
    nobody takes more, and a token comes each ``each_s`` seconds.
    """
    # By this and not by the library's ``retry_after`` of a peek, which is one token too short (3.5.0).
    return max(0.0, full_in_s + (in_line + 1 - burst) * each_s)


def _limiter(rate: SourceRate) -> "Throttled":
    from throttled.asyncio import (  # noqa: PLC0415 - see who calls it
        MemoryStore,
        RateLimiterType,
        Throttled,
        rate_limiter,
    )

    quota = rate_limiter.per_min(rate.per_minute, burst=rate.burst)
    return Throttled(using=RateLimiterType.GCRA.value, quota=quota, store=MemoryStore())


def _too_many(source: str, rate: SourceRate, wait_s: float) -> RateLimitedError:
    return RateLimitedError(
        f"The source {source} takes {rate.per_minute} calls a minute of yours, and the next turn is in {wait_s:.1f} s, "
        "which is more than this call has left; send it again then.",
        retry_after_ms=math.ceil(wait_s * 1000),
    )
