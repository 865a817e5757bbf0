"""Plans of shaping options, shaped results, and retained results."""

import threading
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.shaping import ShapingPlan
from toold.tools.orchestration.result_shaping import (
    MAX_SIBLING_BYTES,
    OPTIONS_SCHEMA,
    apply,
    is_large,
    plan_shaping,
    retain_shaped,
)


def test_options_without_effect_are_idle() -> None:
    """Missing options and options that change nothing leave a result unchanged."""
    for options in (None, {}, {"limit": None}, {"return_mode": "inline"}):
        assert plan_shaping(options).idle
    assert not plan_shaping({"limit": 1}).idle


def test_a_file_has_a_format() -> None:
    """The default format is JSON."""
    assert plan_shaping({"return_mode": "file"}).file_format == "json"
    assert plan_shaping({"return_mode": "file", "format": "csv"}).file_format == "csv"
    assert plan_shaping({"return_mode": "file", "format": "csv"}).to_file


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"format": "xml", "return_mode": "file"}, {"options.format": "should be one of json, ndjson, csv"}),
        ({"format": "csv"}, {"options.format": "applies to files; set return_mode to 'file'"}),
        ({"format": ["csv"], "limit": "x"}, {"options.format": "should be", "options.limit": "should be a number"}),
        ({"format": "csv", "filter": "a == 1"}, {"options.format": "applies to files", "options.filter": "'==' is no"}),
        ({"limits": 1}, {"options.limits": "is not an option; did you mean 'limit'?"}),
        ([], {"options": "should be an object"}),
    ],
)
def test_all_problems_are_reported_at_once(options: Any, fields: dict[str, str]) -> None:
    """One error reports problems of the format and of all other options by place."""
    with pytest.raises(InvalidArgumentsError) as caught:
        plan_shaping(options)
    assert caught.value.details is not None
    reported = caught.value.details["fields"]
    assert reported.keys() == fields.keys()
    for place, words in fields.items():
        assert reported[place].startswith(words)
        assert place in caught.value.message


def test_the_schema_contains_every_option() -> None:
    """The options in the schema are exactly those that are accepted."""
    for name in OPTIONS_SCHEMA["anyOf"][0]["properties"]:
        with pytest.raises(InvalidArgumentsError) as caught:
            plan_shaping({name: object()})
        assert "is not an option" not in caught.value.message
    with pytest.raises(InvalidArgumentsError) as caught:
        plan_shaping({"x": 1})
    (reported,) = (caught.value.details or {})["fields"].values()
    assert all(name in reported for name in OPTIONS_SCHEMA["anyOf"][0]["properties"] if name != "format")


async def test_large_values_are_shaped_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large values and expensive filters are processed in a thread, small values on the event loop."""
    threads: list[str] = []
    shape = ShapingPlan.apply

    def noted(plan: ShapingPlan, value: Any) -> Any:
        threads.append(threading.current_thread().name)
        return shape(plan, value)

    monkeypatch.setattr(ShapingPlan, "apply", noted)
    plan = plan_shaping({"limit": 1}).plan
    assert (await apply(plan, [1, 2])).value == [1]
    assert (await apply(plan, list(range(5_000)))).value == [0]
    many = plan_shaping({"filter": " OR ".join(["n = 1"] * 1_000)}).plan
    assert (await apply(many, [{"n": 1}] * 20)).value == [{"n": 1}] * 20
    long = plan_shaping({"filter": " OR ".join(["n CONTAINS y"] * 10)}).plan
    assert (await apply(long, [{"n": "x" * 200_000}])).value == []
    assert threads[0] == threading.main_thread().name
    assert threading.main_thread().name not in threads[1:]


@pytest.mark.parametrize(
    ("options", "text", "expected"),
    [
        ({"at": "a", "filter": "n > 1"}, ' {"a": [{"n": 1}, {"n": 2}], "b": []}', [{"n": 2}]),
        ({"limit": 1}, "[1, 2]", [1]),
        ({"limit": 1}, f'[1, "{"x" * 100_000}"]', [1]),
        ({"at": "a"}, '{"a": 5}', 5),
        ({"select_fields": ["a"]}, '{"a": 5, "b": 6}', {"a": 5}),
        ({}, "[1, 2]", "[1, 2]"),
        ({"select_fields": ["a"]}, '{"a": 5', '{"a": 5'),
        ({"select_fields": ["a"]}, "[" * 100_000, "[" * 100_000),
        ({"select_fields": ["a"]}, '["\udc00"]', '["\udc00"]'),
        ({"select_fields": ["a"]}, '"a"', '"a"'),
    ],
    ids=["object", "list", "long", "part", "fields", "nothing asked", "no JSON", "too deep", "no Unicode", "a text"],
)
async def test_json_text_is_shaped_as_its_value(options: Any, text: str, expected: Any) -> None:
    """Text that contains a JSON object or list is parsed if there are options; any other text is unchanged."""
    assert (await apply(plan_shaping(options).plan, text)).value == expected


@pytest.mark.parametrize(
    ("value", "large"),
    [
        ([], False),
        ("x" * 10_000, False),
        ([[0] * 50] * 20, False),
        ([[0] * 50] * 50, True),
        ({"a": {"b": list(range(3_000))}}, True),
        ({str(number): None for number in range(3_000)}, True),
    ],
)
def test_is_large_counts_the_values(value: Any, large: bool) -> None:
    """Nested values count; the length of a text does not."""
    assert is_large(value) is large


async def answered(context: Any, value: Any, **options: Any) -> dict[str, Any]:
    shaping = plan_shaping({"return_mode": "file", **options})
    return await retain_shaped(await apply(shaping.plan, value), shaping, context, name="a")


@pytest.mark.parametrize(
    ("options", "siblings"),
    [
        ({}, {"context": {"next_cursor": "c", "total": 9}}),
        ({"limit": 1}, {"context": {"next_cursor": "c", "total": 9}}),
        ({"at": "items"}, {}),
        ({"aggregate": {"count": True}}, {}),
        ({"select_fields": ["total"]}, {}),
    ],
    ids=["all", "limited", "the list alone", "figures", "one value"],
)
async def test_the_fields_around_the_rows_are_returned_with_the_handle(
    context: Any, options: dict[str, Any], siblings: dict[str, Any]
) -> None:
    """A caller needs fields such as the cursor for the next page. The file contains only the rows."""
    answer = await answered(context, {"items": [{"n": 1}, {"n": 2}], "next_cursor": "c", "total": 9}, **options)
    assert answer["handle"] == f"{context.call_id}/a"
    assert {name: answer[name] for name in ("context", "omitted") if name in answer} == siblings


@pytest.mark.parametrize(("answer_bytes", "most"), [(20 * 1024**2, MAX_SIBLING_BYTES), (4096, 512)])
async def test_large_fields_around_the_rows_are_omitted(context: Any, answer_bytes: int, most: int) -> None:
    """The answer counts the omitted fields; small fields take precedence and keep their order."""
    context.max_answer_bytes = answer_bytes
    value = {"page": "x" * most, "info": "y" * (most - 100), "rows": [1], "next": "c", "more": "z" * 100, "total": 9}
    answer = await answered(context, value)
    assert answer["context"] == {"next": "c", "more": "z" * 100, "total": 9}
    assert answer["omitted"] == 2
