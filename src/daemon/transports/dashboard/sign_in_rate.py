"""Limits how often an address may try to sign in."""

from typing import Final

ATTEMPTS_PER_MINUTE: Final = 20
"""The limit bounds the work and the log lines. Tokens cannot be guessed in any case: they have 256 random bits."""
ATTEMPTS_PER_MINUTE_IN_ALL: Final = 200


class SignInRate:
    """Counts attempts by address, and in all."""

    def __init__(self) -> None:
        # Imported here, because the import takes 30 ms, and not every daemon has a dashboard.
        from throttled import RateLimiterType, Throttled, rate_limiter, store  # noqa: PLC0415

        memory = store.MemoryStore()

        def limit(attempts: int) -> Throttled:
            quota = rate_limiter.per_min(attempts, burst=attempts)
            return Throttled(using=RateLimiterType.GCRA.value, quota=quota, store=memory)

        self._of_address = limit(ATTEMPTS_PER_MINUTE)
        self._in_all = limit(ATTEMPTS_PER_MINUTE_IN_ALL)

    def wait_s(self, address: str) -> float:
        """Count an attempt; returns 0 if it is allowed, otherwise the seconds to wait."""
        for limit, key in ((self._of_address, f"address {address}"), (self._in_all, "all")):
            result = limit.limit(key)
            if result.limited:
                return max(1.0, float(result.state.retry_after))
        return 0.0
