"""The tool ``execute_batch`` and its items."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.protocol.tool_call import Metadata, TextContent, Timings, ToolResult
from toold.tools import RateState, bind
from toold.tools.orchestration.execute_batch import (
    MAX_DETACHED_ITEMS,
    BatchArguments,
    RetainedItems,
    execute_batch,
    items_of,
    plan_batch,
)


@pytest.mark.parametrize(
    ("count", "detach", "words"),
    [
        (0, False, "at least one item"),
        (101, False, "at most 100 items, not 101; with detach at most 10,000"),
        (MAX_DETACHED_ITEMS + 1, True, "at most 10,000 items, not 10,001"),
    ],
)
async def test_the_number_of_items_is_limited(context: Any, count: int, detach: bool, words: str) -> None:
    """A batch accepts 1–100 items, or up to 10,000 if it is detached."""
    with pytest.raises(InvalidArgumentsError, match=words) as refused:
        await items_of([{}] * count, context, detach=detach)
    assert "items" in (refused.value.details or {})["fields"]


@pytest.mark.parametrize(("count", "detach"), [(100, False), (MAX_DETACHED_ITEMS, True)])
async def test_the_maximum_number_of_items_is_accepted(context: Any, count: int, detach: bool) -> None:
    """The items are returned unchanged."""
    assert await items_of([{}] * count, context, detach=detach) == [{}] * count


async def test_the_rows_of_a_handle_are_shaped_first(context: Any) -> None:
    """The options of ``read_result`` apply; ``at`` selects a list within an object."""
    context.kept["h"] = [{"n": 1}, {"n": 2}, {"n": 3}]
    assert await items_of(RetainedItems(handle="h"), context, detach=False) == [{"n": 1}, {"n": 2}, {"n": 3}]
    few = RetainedItems(handle="h", options={"filter": "n > 1", "select_fields": ["n"], "limit": 1})
    assert await items_of(few, context, detach=False) == [{"n": 2}]
    context.kept["h"] = {"a": [1], "b": [2]}
    assert await items_of(RetainedItems(handle="h", options={"at": "b"}), context, detach=False) == [2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (None, "not a list"),
        ({"at": "x"}, "items.options"),
        ({"filtr": "n"}, "items.options.filtr"),
        ({"at": "b", "return_mode": "summary"}, "not a list"),
    ],
)
async def test_a_handle_without_a_list_is_rejected(context: Any, options: Any, words: str) -> None:
    """The error names the place of the problem."""
    context.kept["h"] = {"a": 1, "b": [2]} if options else "text"
    with pytest.raises(InvalidArgumentsError, match=words):
        await items_of(RetainedItems(handle="h", options=options), context, detach=False)


async def test_an_unknown_handle_is_not_found(context: Any) -> None:
    """The error is the same as that of ``read_result``."""
    with pytest.raises(NotFoundError):
        await items_of(RetainedItems(handle="nothing"), context, detach=True)


def arguments(**given: Any) -> BatchArguments:
    bound = bind(execute_batch, {"tool_name": "get", "items": [{"path": "x"}], **given})
    assert isinstance(bound, BatchArguments)
    return bound


def test_the_default_options_of_a_batch(tools: Any) -> None:
    """By default a batch has concurrency 5, no retries and no results, and continues after a failure."""
    plan = plan_batch(arguments(), [{}], tools("get"))
    assert (plan.concurrency, plan.max_retries, plan.stop_on_error, plan.detail) == (5, 0, False, False)
    options = {"concurrency": 2, "max_retries": 3, "on_error": "stop", "result_mode": "detail", "select_fields": ["a"]}
    plan = plan_batch(arguments(options=options), [{}], tools("get"))
    assert (plan.concurrency, plan.max_retries, plan.stop_on_error, plan.detail) == (2, 3, True, True)
    assert plan.shape is not None


@pytest.mark.parametrize(
    ("given", "place", "wrong"),
    [
        ({"args": {"path": "{{item.x}}", "limt": 1}}, "args.limt", "did you mean 'limit'"),
        ({"args": {"limit": "{{index}}"}}, "args.path", "is missing"),
        ({"args": {"path": "{{itm}}"}}, "args", "no 'itm' in a batch"),
        ({"args": {"path": "{{item"}}, "args", "position"),
        ({"items": ["a", "b"]}, "items", "args builds"),
        ({"options": {"select_fields": ["a..b"]}}, "options.select_fields.0", "position"),
    ],
)
def test_an_error_that_affects_every_item_is_rejected_at_once(
    tools: Any, given: dict[str, Any], place: str, wrong: str
) -> None:
    """Nothing runs, and the error names the place."""
    with pytest.raises(InvalidArgumentsError) as raised:
        plan_batch(arguments(**given), given.get("items", [{}]), tools("get"))
    assert wrong in (raised.value.details or {})["fields"][place]


@pytest.mark.parametrize(
    "given",
    [
        {"timeout_s": 86_401},
        {"options": {"concurrency": 11}},
        {"options": {"max_retries": 4}},
        {"options": {"max_delay_s": 3601}},
        {"options": {"on_error": "fallback"}},
    ],
)
def test_options_are_limited(given: dict[str, Any]) -> None:
    """The limits are a timeout of one day, concurrency 10, 3 retries, and a delay of one hour before each."""
    with pytest.raises(InvalidArgumentsError):
        arguments(**given)


async def test_the_rate_limit_of_the_source_is_reported(context: Any, tools: Any) -> None:
    """The report has its state after the last item; a tool without a rate limit has none."""
    context.tools = {"get": tools("get")}
    context.results = {"0": ToolResult(Metadata(1.0, Timings()), (TextContent("done"),))}
    assert "rate" not in await execute_batch.function(arguments(), context)
    context.rate = RateState(per_minute=100, burst=100, tokens=99, wait_ms=0)
    answer = await execute_batch.function(arguments(), context)
    assert answer["rate"] == {"per_minute": 100, "burst": 100, "tokens": 99, "wait_ms": 0}
