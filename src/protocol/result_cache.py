"""A cache of results, for replay. Pure: callers pass the time."""

from collections import OrderedDict

import msgspec

from .tool_call import ToolResult

Owner = tuple[str, str]
"""The session's id and the request key."""


class _CachedResult(msgspec.Struct, frozen=True, gc=False):
    result: ToolResult
    size: int
    stored_at: float


class CacheTotal:
    """The size of the results in all caches that share it."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class ResultCache:
    """One principal's results, the oldest first. Expired results are evicted, and the oldest ones beyond the size
    limit.

    ``max_bytes`` bounds the total size of the results as sent; ``ttl_s`` is in seconds of the clock that ``now`` comes
    from.
    """

    __slots__ = ("_bytes", "_cached", "_max_bytes", "_total", "_ttl_s")

    def __init__(self, max_bytes: int, ttl_s: float, total: CacheTotal | None = None) -> None:
        self._total = CacheTotal() if total is None else total
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._bytes = 0
        self._cached: OrderedDict[Owner, _CachedResult] = OrderedDict()

    def __len__(self) -> int:
        return len(self._cached)

    def __repr__(self) -> str:
        return f"<ResultCache results={len(self._cached)} bytes={self._bytes}/{self._max_bytes}>"

    @property
    def bytes(self) -> int:
        return self._bytes

    def put(self, owner: Owner, result: ToolResult, size: int, now: float) -> None:
        """Caches a result of ``size`` bytes, unless it exceeds the whole cache."""
        if owner in self._cached:
            self.drop(owner)
        if size > self._max_bytes:
            return
        self._cached[owner] = _CachedResult(result, size, now)
        self._bytes += size
        self._total.bytes += size
        while self._bytes > self._max_bytes or now - next(iter(self._cached.values())).stored_at > self._ttl_s:
            self._count(-self._cached.popitem(last=False)[1].size)

    def get(self, owner: Owner, now: float) -> ToolResult | None:
        """Returns the result if it is cached and has not expired."""
        cached = self._cached.get(owner)
        return None if cached is None or self._expired(cached, now) else cached.result

    def drop(self, owner: Owner) -> None:
        """Removes a result."""
        cached = self._cached.pop(owner, None)
        if cached is not None:
            self._count(-cached.size)

    def size(self, owner: Owner) -> int:
        """Returns the size of a result; 0 if it is not cached."""
        cached = self._cached.get(owner)
        return 0 if cached is None else cached.size

    def _count(self, size: int) -> None:
        self._bytes += size
        self._total.bytes += size

    def _expired(self, cached: _CachedResult, now: float) -> bool:
        return now - cached.stored_at > self._ttl_s
