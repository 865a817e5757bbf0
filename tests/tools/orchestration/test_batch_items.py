"""The items of a batch: how many there may be, and those of a handle."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.tools.orchestration.batch_items import MAX_DETACHED_ITEMS, RetainedItems, items_of


@pytest.mark.parametrize(
    ("count", "detach", "words"),
    [
        (0, False, "one item at least"),
        (101, False, "at most 100 items, not 101; with detach it takes 10,000"),
        (MAX_DETACHED_ITEMS + 1, True, "at most 10,000 items, not 10,001"),
    ],
)
async def test_bounds_are_kept_to(context: Any, count: int, detach: bool, words: str) -> None:
    """1–100 items, or 10,000 detached."""
    with pytest.raises(InvalidArgumentsError, match=words) as refused:
        await items_of([{}] * count, context, detach=detach)
    assert "items" in (refused.value.details or {})["fields"]


@pytest.mark.parametrize(("count", "detach"), [(100, False), (MAX_DETACHED_ITEMS, True)])
async def test_as_many_as_may_be_are_taken(context: Any, count: int, detach: bool) -> None:
    """As they were sent."""
    assert await items_of([{}] * count, context, detach=detach) == [{}] * count


async def test_the_rows_of_a_handle_are_shaped_first(context: Any) -> None:
    """By the options of ``read_result``; a list within an object is named by ``at``."""
    context.kept["h"] = [{"n": 1}, {"n": 2}, {"n": 3}]
    assert await items_of(RetainedItems(handle="h"), context, detach=False) == [{"n": 1}, {"n": 2}, {"n": 3}]
    few = RetainedItems(handle="h", options={"filter": "n > 1", "select_fields": ["n"], "limit": 1})
    assert await items_of(few, context, detach=False) == [{"n": 2}]
    context.kept["h"] = {"a": [1], "b": [2]}
    assert await items_of(RetainedItems(handle="h", options={"at": "b"}), context, detach=False) == [2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (None, "no list"),
        ({"at": "x"}, "items.options"),
        ({"filtr": "n"}, "items.options.filtr"),
        ({"at": "b", "return_mode": "summary"}, "no list"),
    ],
)
async def test_what_is_no_list_is_refused(context: Any, options: Any, words: str) -> None:
    """With the place of what is wrong."""
    context.kept["h"] = {"a": 1, "b": [2]} if options else "text"
    with pytest.raises(InvalidArgumentsError, match=words):
        await items_of(RetainedItems(handle="h", options=options), context, detach=False)


async def test_a_handle_that_is_not_there_is_not_found(context: Any) -> None:
    """As ``read_result`` says it."""
    with pytest.raises(NotFoundError):
        await items_of(RetainedItems(handle="nothing"), context, detach=True)
