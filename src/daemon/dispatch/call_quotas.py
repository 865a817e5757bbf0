"""Quotas of calls: how many calls of some tools a principal may make per minute and per day.

A call counts for each quota that covers it; a refused call counts for none. Only for the event loop's thread.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from ...protocol.error_codes import CallError, RateLimitedError, ServiceUnavailableError
from ...store import QuotaUse, SharedLimitsPort, StoreError, day_of
from .budget import reset_at

MINUTE_S: Final = 60.0
_MAX_IDLE: Final = 1000
"""Beyond this number, counters without calls in the last minute and today are deleted."""


class CallQuota(NamedTuple):
    """A limit on the calls of each of these principals to all of these tools together. None: no limit."""

    name: str
    tools: tuple[str, ...]
    """Globs of tool names."""
    principals: tuple[str, ...]
    """Globs of principal names."""
    per_minute: int | None
    """Calls in any 60 seconds."""
    per_day: int | None
    """Calls per day (UTC)."""

    def covers(self, tool: str, principal: str) -> bool:
        return any(fnmatchcase(tool, glob) for glob in self.tools) and any(
            fnmatchcase(principal, glob) for glob in self.principals
        )


class _Taken:
    """The calls of one principal that count for one quota."""

    __slots__ = ("day", "minute", "today")

    def __init__(self) -> None:
        self.minute: deque[float] = deque()
        """The times of the calls of the last minute, the oldest first."""
        self.day = ""
        self.today = 0


class CallQuotas:
    """All quotas, and each principal's use of them."""

    def __init__(
        self,
        quotas: Sequence[CallQuota] = (),
        *,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
        shared: SharedLimitsPort | None = None,
    ) -> None:
        self.shared: Final = shared
        """Counts the calls of all nodes; None if this process counts them."""
        self._clock = clock
        self._wall_clock = wall_clock
        self.active = bool(quotas)
        """Whether there are any quotas."""
        self._quotas: Sequence[CallQuota] = tuple(quotas)
        # By the name of the quota and the principal.
        self._taken: dict[tuple[str, str], _Taken] = {}

    def __repr__(self) -> str:
        return f"<CallQuotas {', '.join(quota.name for quota in self._quotas) or 'none'}>"

    def apply(self, quotas: Sequence[CallQuota]) -> None:
        """Replace the quotas. Calls that were counted for a quota still count for a new quota of the same name."""
        self._quotas, self.active = tuple(quotas), bool(quotas)
        names = {quota.name for quota in quotas}
        self._taken = {key: taken for key, taken in self._taken.items() if key[0] in names}

    def restore(self, day: str, calls: Mapping[tuple[str, str], int]) -> None:
        """Count the calls that an earlier process ran on this day, by principal and tool."""
        for (principal, tool), number in calls.items():
            for quota in self._quotas:
                if quota.per_day is not None and quota.covers(tool, principal):
                    taken = self._of(quota, principal, day)
                    taken.today += number

    def refusal(self, tool: str, principal: str) -> RateLimitedError | None:
        """Count a call. If it is refused, count nothing and return the reason."""
        quotas = [quota for quota in self._quotas if quota.covers(tool, principal)]
        if not quotas:
            return None
        now, at = self._clock(), self._wall_clock()
        day = day_of(at)
        of_quotas = [(quota, self._of(quota, principal, day)) for quota in quotas]
        refusals = [
            refusal
            for quota, taken in of_quotas
            if (refusal := _refusal(quota, taken, now, reset_at(at) - at)) is not None
        ]
        if refusals:
            return max(refusals, key=lambda refusal: refusal.retry_after_ms or 0)
        for quota, taken in of_quotas:
            if quota.per_minute is not None:
                taken.minute.append(now)
            taken.today += 1
        return None

    async def take(self, tool: str, principal: str) -> CallError | None:
        """Count a call, for all nodes if they count together. If it is refused, count nothing and return the reason."""
        if self.shared is None:
            return self.refusal(tool, principal)
        quotas = [quota for quota in self._quotas if quota.covers(tool, principal)]
        if not quotas:
            return None
        day = day_of(self._wall_clock())
        uses = [
            QuotaUse(quota.name, quota.per_minute, quota.per_day, self._of(quota, principal, day).today)
            for quota in quotas
        ]
        try:
            taken = await self.shared.take_call(principal, uses)
        except StoreError as error:
            return ServiceUnavailableError.content_free(
                f"The call cannot be counted for its quota ({error.reason}); try again later.", executed="no"
            )
        used_up = next((quota for quota in quotas if quota.name == taken.refused_by), None)
        if used_up is None:
            return None
        limit = _per_day(used_up) if taken.of_day else _per_minute(used_up)
        return _exhausted(used_up, limit, taken.wait_s)

    def _of(self, quota: CallQuota, principal: str, day: str) -> _Taken:
        taken = self._taken.get((quota.name, principal))
        if taken is None:
            if len(self._taken) >= _MAX_IDLE:
                self._delete_idle(day)
            taken = self._taken[quota.name, principal] = _Taken()
        if taken.day != day:
            taken.day, taken.today = day, 0
        return taken

    def _delete_idle(self, day: str) -> None:
        horizon = self._clock() - MINUTE_S
        self._taken = {
            key: taken
            for key, taken in self._taken.items()
            if taken.day == day or (taken.minute and taken.minute[-1] > horizon)
        }


def _refusal(quota: CallQuota, taken: _Taken, now: float, day_left_s: float) -> RateLimitedError | None:
    """Why a quota does not allow one more call; None if it does. Deletes the times of calls older than a minute."""
    minute = taken.minute
    while minute and minute[0] <= now - MINUTE_S:
        minute.popleft()
    if quota.per_day is not None and taken.today >= quota.per_day:
        return _exhausted(quota, _per_day(quota), day_left_s)
    if quota.per_minute is not None and len(minute) >= quota.per_minute:
        # If the quota was lowered, more calls than it allows may be in the list.
        return _exhausted(quota, _per_minute(quota), minute[-quota.per_minute] + MINUTE_S - now)
    return None


def _per_day(quota: CallQuota) -> str:
    return f"{quota.per_day} calls per day (UTC)"


def _per_minute(quota: CallQuota) -> str:
    return f"{quota.per_minute} calls per minute"


def _exhausted(quota: CallQuota, limit: str, wait_s: float) -> RateLimitedError:
    return RateLimitedError.content_free(
        f"Your quota {quota.name} of {limit} for {', '.join(quota.tools)} is used up; the next call is possible in "
        f"{math.ceil(wait_s)} s.",
        retry_after_ms=math.ceil(wait_s * 1000),
    )
