"""The store's clock, by which results, ids and sessions expire. It advances only while a daemon runs. So the store
forgets no id because the system's clock changes, before or after a restart.

Callers use Unix times. The store converts them by age: one hour ago by the system's clock becomes one hour ago by this
clock.
"""

import time


class StoreClock:
    """Advances with the monotonic clock from ``start``, a time of this clock in seconds. Immutable, so thread-safe."""

    def __init__(self, start: float) -> None:
        self._offset = start - time.monotonic()

    def now(self) -> float:
        """Returns the present time of this clock."""
        return time.monotonic() + self._offset

    def stored_time(self, unix_time: float) -> float:
        """Converts a recent Unix time to a time of this clock."""
        return self.now() - (time.time() - unix_time)

    def unix_time(self, stored_time: float) -> float:
        """Converts a time of this clock to the Unix time with the same age."""
        return time.time() - (self.now() - stored_time)
