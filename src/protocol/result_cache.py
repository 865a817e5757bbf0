"""Results that are cached for whoever asks for them again. Pure: the clock is handed in."""

from collections import OrderedDict

import msgspec

from .tool_call import ToolResult

Owner = tuple[str, str]
"""Whose result it is: the session's id and the request key."""


class _CachedResult(msgspec.Struct, frozen=True, gc=False):
    result: ToolResult
    size: int
    since: float


class ResultCache:
    """One principal's results, the oldest first. What is too old, or too much, goes; the oldest goes first.

    ``max_bytes`` bounds the sum of the results' sizes as they travel; ``ttl_s`` is in seconds of the clock that
    ``now`` is read from.
    """

    __slots__ = ("_bytes", "_cached", "_max_bytes", "_ttl_s")

    def __init__(self, max_bytes: int, ttl_s: float) -> None:
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
        """Keep a result of ``size`` bytes; one that is larger than all the room there is, is not cached."""
        if owner in self._cached:
            self.drop(owner)
        if size > self._max_bytes:
            return
        self._cached[owner] = _CachedResult(result, size, now)
        self._bytes += size
        while self._bytes > self._max_bytes or now - next(iter(self._cached.values())).since > self._ttl_s:
            self._bytes -= self._cached.popitem(last=False)[1].size

    def get(self, owner: Owner, now: float) -> ToolResult | None:
        """The result, if it is still there."""
        cached = self._cached.get(owner)
        return None if cached is None or self._is_old(cached, now) else cached.result

    def drop(self, owner: Owner) -> None:
        """The result is not needed any more, or its session has ended."""
        cached = self._cached.pop(owner, None)
        if cached is not None:
            self._bytes -= cached.size

    def _is_old(self, cached: _CachedResult, now: float) -> bool:
        return now - cached.since > self._ttl_s
