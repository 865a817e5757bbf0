"""Results are kept within their time and their room, the newest longest."""

from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.result_cache import ResultCache
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult


def result(text: str) -> ToolResult:
    return ToolResult(Metadata(1.0, Timings()), (TextContent(text),))


def test_a_result_is_there_until_its_time_is_up() -> None:
    """After ``ttl_s`` it is as if it had never been kept."""
    shelf = ResultCache(max_bytes=100, ttl_s=10)
    shelf.put(("s", "a"), result("a"), 10, now=0)
    assert shelf.get(("s", "a"), now=10) == result("a")
    assert shelf.get(("s", "a"), now=10.1) is None


def test_what_was_cached_elsewhere_keeps_its_age() -> None:
    """A result that comes back from the disk is as old as it is, and costs younger ones nothing but its bytes."""
    shelf = ResultCache(max_bytes=100, ttl_s=10)
    shelf.put(("s", "young"), result("young"), 10, now=20)
    shelf.put(("s", "old"), result("old"), 10, now=11)
    shelf.put(("s", "stale"), result("stale"), 10, now=9)
    assert [shelf.get(("s", name), now=20) is not None for name in ("young", "old", "stale")] == [True, True, False]


def test_the_oldest_goes_first_where_there_is_no_room() -> None:
    """The bound is kept by dropping from the old end."""
    shelf = ResultCache(max_bytes=25, ttl_s=10)
    for name in "abc":
        shelf.put(("s", name), result(name), 10, now=0)
    assert [shelf.get(("s", name), now=0) is not None for name in "abc"] == [False, True, True]
    assert shelf.bytes == 20


def test_what_is_larger_than_all_room_is_not_cached_and_costs_the_others_nothing() -> None:
    """One huge result does not empty the shelf."""
    shelf = ResultCache(max_bytes=25, ttl_s=10)
    shelf.put(("s", "a"), result("a"), 10, now=0)
    shelf.put(("s", "b"), result("b"), 26, now=0)
    assert shelf.get(("s", "a"), now=0) is not None
    assert shelf.get(("s", "b"), now=0) is None


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 40), st.integers(0, 5), st.booleans()), max_size=30)
)
def test_the_bound_holds_and_the_sum_is_true(steps: list[tuple[str, int, int, bool]]) -> None:
    """Whatever is put and dropped, the bytes are those of what is kept, and never more than the bound."""
    shelf, now, sizes = ResultCache(max_bytes=60, ttl_s=8), 0, {}
    for name, size, pause, drop in steps:
        now += pause
        if drop:
            shelf.drop(("s", name))
        else:
            shelf.put(("s", name), result(name), size, now)
            sizes[name] = size
        kept = [name for name in sizes if (("s", name)) in shelf._cached]
        assert shelf.bytes == sum(sizes[name] for name in kept) <= 60
