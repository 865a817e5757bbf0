"""Results that are kept for whoever asks for them again. Pure: the clock is handed in."""

from collections import OrderedDict

import msgspec

from .tool_call import ToolResult

Owner = tuple[str, str]
"""Whose result it is: the session's id and the request key."""


class _Kept(msgspec.Struct, frozen=True, gc=False):
    result: ToolResult
    size: int
    since: float


class ResultCache:
    """One principal's results, the oldest first. What is too old, or too much, goes; the oldest goes first.

    ``max_bytes`` bounds the sum of the results' sizes as they travel; ``ttl_s`` is in seconds of the clock that
    ``now`` is read from.
    """

    __slots__ = ("_bytes", "_kept", "_max_bytes", "_ttl_s")

    def __init__(self, max_bytes: int, ttl_s: float) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._bytes = 0
        self._kept: OrderedDict[Owner, _Kept] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def __repr__(self) -> str:
        return f"<ResultCache results={len(self._kept)} bytes={self._bytes}/{self._max_bytes}>"

    @property
    def bytes(self) -> int:
        return self._bytes

    def put(self, owner: Owner, result: ToolResult, size: int, now: float) -> None:
        """Keep a result of ``size`` bytes; one that is larger than all the room there is, is not kept."""
        if owner in self._kept:
            self.drop(owner)
        if size > self._max_bytes:
            return
        self._kept[owner] = _Kept(result, size, now)
        self._bytes += size
        while self._bytes > self._max_bytes or now - next(iter(self._kept.values())).since > self._ttl_s:
            self._bytes -= self._kept.popitem(last=False)[1].size

    def get(self, owner: Owner, now: float) -> ToolResult | None:
        """The result, if it is still there."""
        kept = self._kept.get(owner)
        return None if kept is None or self._is_old(kept, now) else kept.result

    def drop(self, owner: Owner) -> None:
        """The result is not needed any more, or its session has ended."""
        kept = self._kept.pop(owner, None)
        if kept is not None:
            self._bytes -= kept.size

    def _is_old(self, kept: _Kept, now: float) -> bool:
        return now - kept.since > self._ttl_s
