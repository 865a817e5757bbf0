"""Results are cached within their time and size limits."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.result_cache import CacheTotal, ResultCache
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult


@dataclass(eq=False)
class Ended:
    """A call that ended."""

    since: float = 0
    result: ToolResult | None = None
    size: int = 0
    kept_bytes: int = 0

    def drop_kept(self) -> None:
        self.kept_bytes = 0


def result(text: str) -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def test_results_expire() -> None:
    """A result is not returned after ``ttl_s``."""
    cache, call = ResultCache(max_bytes=100, ttl_s=10), Ended()
    cache.put(call, result("a"), 10)
    assert cache.get(call, now=10) == result("a")
    assert cache.get(call, now=10.1) is None


def test_restored_results_keep_their_age() -> None:
    """A result restored from the disk expires at its original time, and evicts younger ones only by its size."""
    cache = ResultCache(max_bytes=100, ttl_s=10)
    young, old, stale = calls = [Ended(since) for since in (20, 11, 9)]
    for call in calls:
        cache.put(call, result("a"), 10)
    assert [cache.get(call, now=20) is not None for call in (young, old, stale)] == [True, True, False]


def test_the_oldest_results_are_evicted() -> None:
    """The size limit holds."""
    cache, calls = ResultCache(max_bytes=25, ttl_s=10), [Ended() for _ in range(3)]
    for call in calls:
        cache.put(call, result("a"), 10)
    assert [cache.get(call, now=0) is not None for call in calls] == [False, True, True]
    assert cache.bytes == 20


def test_results_larger_than_the_cache_are_not_cached() -> None:
    """One huge result does not empty the cache."""
    cache, small, huge = ResultCache(max_bytes=25, ttl_s=10), Ended(), Ended()
    cache.put(small, result("a"), 10)
    cache.put(huge, result("b"), 26)
    assert cache.get(small, now=0) is not None
    assert cache.get(huge, now=0) is None


def test_what_a_call_keeps_counts() -> None:
    """Long arguments evict older results like the result itself, and are released with it."""
    cache, first, second = ResultCache(max_bytes=25, ttl_s=10), Ended(kept_bytes=10), Ended(kept_bytes=10)
    cache.put(first, result("a"), 10)
    assert cache.bytes == 20
    cache.put(second, result("b"), 10)
    assert (first.result, first.kept_bytes, second.kept_bytes, cache.bytes) == (None, 0, 10, 20)
    huge = Ended(kept_bytes=20)
    cache.put(huge, result("c"), 10)
    assert (huge.result, huge.kept_bytes, cache.bytes) == (None, 0, 20)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(0, 30), st.integers(0, 5), st.sampled_from([None, 0, 1, 2])),
        max_size=30,
    )
)
def test_the_size_is_exact_and_limited(steps: list[tuple[int, int, int, int | None]]) -> None:
    """After any additions and removals, the size is that of the cached results and of what is kept with them, and
    within the limit.
    """
    total, now = CacheTotal(), 0
    cache, calls = ResultCache(max_bytes=60, ttl_s=8, total=total), list[Ended]()
    for size, kept, pause, dropped in steps:
        now += pause
        if dropped is None or dropped >= len(calls):
            calls.append(Ended(now, kept_bytes=kept))
            cache.put(calls[-1], result("a"), size)
        else:
            cache.drop(calls[-1 - dropped])
        assert cache.bytes == total.bytes == sum(call.size + call.kept_bytes for call in calls) <= 60
        assert len(cache) == sum(call.result is not None for call in calls)
