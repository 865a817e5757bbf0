"""Results are cached within their time and size limits."""

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.result_cache import ResultCache
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult


def result(text: str) -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def test_results_expire() -> None:
    """A result is not returned after ``ttl_s``."""
    cache = ResultCache(max_bytes=100, ttl_s=10)
    cache.put(("s", "a"), result("a"), 10, now=0)
    assert cache.get(("s", "a"), now=10) == result("a")
    assert cache.get(("s", "a"), now=10.1) is None


def test_restored_results_keep_their_age() -> None:
    """A result restored from the disk expires at its original time, and evicts younger ones only by its size."""
    cache = ResultCache(max_bytes=100, ttl_s=10)
    cache.put(("s", "young"), result("young"), 10, now=20)
    cache.put(("s", "old"), result("old"), 10, now=11)
    cache.put(("s", "stale"), result("stale"), 10, now=9)
    assert [cache.get(("s", name), now=20) is not None for name in ("young", "old", "stale")] == [True, True, False]


def test_the_oldest_results_are_evicted() -> None:
    """The size limit holds."""
    cache = ResultCache(max_bytes=25, ttl_s=10)
    for name in "abc":
        cache.put(("s", name), result(name), 10, now=0)
    assert [cache.get(("s", name), now=0) is not None for name in "abc"] == [False, True, True]
    assert cache.bytes == 20


def test_results_larger_than_the_cache_are_not_cached() -> None:
    """One huge result does not empty the cache."""
    cache = ResultCache(max_bytes=25, ttl_s=10)
    cache.put(("s", "a"), result("a"), 10, now=0)
    cache.put(("s", "b"), result("b"), 26, now=0)
    assert cache.get(("s", "a"), now=0) is not None
    assert cache.get(("s", "b"), now=0) is None


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40), st.integers(0, 5), st.booleans()), max_size=30)
)
def test_the_size_is_exact_and_limited(steps: list[tuple[str, int, int, bool]]) -> None:
    """After any additions and removals, the size is the sum of the cached results, and within the limit."""
    cache, now, sizes = ResultCache(max_bytes=60, ttl_s=8), 0, {}
    for name, size, pause, drop in steps:
        now += pause
        if drop:
            cache.drop(("s", name))
        else:
            cache.put(("s", name), result(name), size, now)
            sizes[name] = size
        cached = [name for name in sizes if (("s", name)) in cache._cached]
        assert cache.bytes == sum(sizes[name] for name in cached) <= 60
