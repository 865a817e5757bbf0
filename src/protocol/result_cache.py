"""A cache of results, for replay. Pure: callers pass the time."""

from collections import OrderedDict
from typing import Protocol

from .tool_call import ToolResult


class ResultHolder(Protocol):
    """The record of an ended call. Only the cache sets ``result`` and ``size``, and calls ``drop_kept``."""

    since: float
    """The time at which the call ended."""
    result: ToolResult | None
    """The cached result; None if there is none."""
    size: int
    """The size of the sent result, in bytes."""
    kept_bytes: int
    """The size of the long arguments that the record keeps as long as the result."""

    def drop_kept(self) -> None:
        """Releases the long arguments; ``kept_bytes`` is then 0."""
        ...


class CacheTotal:
    """The size of the contents of all caches that share this total."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class ResultCache:
    """One principal's results, oldest first. Expired results are evicted, and the oldest results beyond the size limit.

    ``max_bytes`` bounds the total size of the sent results and of the arguments kept with them. ``ttl_s`` is in seconds
    of the clock of ``now`` and ``since``.
    """

    __slots__ = ("_bytes", "_holders", "_max_bytes", "_total", "_ttl_s")

    def __init__(self, max_bytes: int, ttl_s: float, total: CacheTotal | None = None) -> None:
        self._total = CacheTotal() if total is None else total
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._bytes = 0
        self._holders: OrderedDict[ResultHolder, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def __repr__(self) -> str:
        return f"<ResultCache results={len(self._holders)} bytes={self._bytes}/{self._max_bytes}>"

    @property
    def bytes(self) -> int:
        return self._bytes

    def put(self, holder: ResultHolder, result: ToolResult, size: int) -> None:
        """Caches the result of a call. If it exceeds the whole cache, drops the call's long arguments instead. The call
        must not have a cached result.
        """
        if size + holder.kept_bytes > self._max_bytes:
            holder.drop_kept()
            return
        holder.result, holder.size = result, size
        holders = self._holders
        holders[holder] = None
        self._count(size + holder.kept_bytes)
        while self._bytes > self._max_bytes or holder.since - next(iter(holders)).since > self._ttl_s:
            self._remove(holders.popitem(last=False)[0])

    def get(self, holder: ResultHolder, now: float) -> ToolResult | None:
        """Returns the result if it is cached and has not expired."""
        return None if now - holder.since > self._ttl_s else holder.result

    def drop(self, holder: ResultHolder) -> None:
        """Removes the result of a call, if it is cached."""
        if holder.result is not None:
            del self._holders[holder]
            self._remove(holder)

    def _remove(self, holder: ResultHolder) -> None:
        self._count(-holder.size - holder.kept_bytes)
        holder.result, holder.size = None, 0
        holder.drop_kept()

    def _count(self, size: int) -> None:
        self._bytes += size
        self._total.bytes += size
