"""Plans of shaping options, shaped results, and retained results."""

import threading
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.shaping import ShapingPlan
from toold.tools.orchestration.result_shaping import (
    AROUND_BYTES,
    OPTIONS_SCHEMA,
    apply,
    is_large,
    plan_shaping,
    retain_shaped,
)


def test_nothing_is_asked_where_nothing_is_said() -> None:
    """No options, and options that change nothing, leave a result as it is."""
    for options in (None, {}, {"limit": None}, {"return_mode": "inline"}):
        assert plan_shaping(options).idle
    assert not plan_shaping({"limit": 1}).idle


def test_a_file_has_a_format() -> None:
    """JSON, unless another is named."""
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
def test_what_is_wrong_is_told_all_at_once(options: Any, fields: dict[str, str]) -> None:
    """The format and the options of the plan alike, each by its place."""
    with pytest.raises(InvalidArgumentsError) as caught:
        plan_shaping(options)
    assert caught.value.details is not None
    told = caught.value.details["fields"]
    assert told.keys() == fields.keys()
    for place, words in fields.items():
        assert told[place].startswith(words)
        assert place in caught.value.message


def test_the_schema_shows_every_option() -> None:
    """What a caller reads is what is taken."""
    for name in OPTIONS_SCHEMA["anyOf"][0]["properties"]:
        with pytest.raises(InvalidArgumentsError) as caught:
            plan_shaping({name: object()})
        assert "is not an option" not in caught.value.message
    with pytest.raises(InvalidArgumentsError) as caught:
        plan_shaping({"x": 1})
    (told,) = (caught.value.details or {})["fields"].values()
    assert all(name in told for name in OPTIONS_SCHEMA["anyOf"][0]["properties"] if name != "format")


async def test_what_is_large_is_shaped_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """So is what a filter asks many things of; what is small is shaped on the loop, where it costs less."""
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
async def test_words_that_are_json_are_shaped_as_what_they_say(options: Any, text: str, expected: Any) -> None:
    """An object or a list, where anything is asked of it; what only looks like one stays as it is."""
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
def test_large_is_what_has_many_values(value: Any, large: bool) -> None:
    """However they are nested; the length of a text does not count."""
    assert is_large(value) is large


async def answered(context: Any, value: Any, **options: Any) -> dict[str, Any]:
    shaping = plan_shaping({"return_mode": "file", **options})
    return await retain_shaped(await apply(shaping.plan, value), shaping, context, name="a")


@pytest.mark.parametrize(
    ("options", "around"),
    [
        ({}, {"context": {"next_cursor": "c", "total": 9}}),
        ({"limit": 1}, {"context": {"next_cursor": "c", "total": 9}}),
        ({"at": "items"}, {}),
        ({"aggregate": {"count": True}}, {}),
        ({"select_fields": ["total"]}, {}),
    ],
    ids=["all", "limited", "the list alone", "figures", "one value"],
)
async def test_the_fields_around_the_rows_are_beside_the_handle(
    context: Any, options: dict[str, Any], around: dict[str, Any]
) -> None:
    """So that the next page can be asked for; the file has the rows alone. What is kept whole has nothing beside it."""
    answer = await answered(context, {"items": [{"n": 1}, {"n": 2}], "next_cursor": "c", "total": 9}, **options)
    assert answer["handle"] == f"{context.call_id}/a"
    assert {name: answer[name] for name in ("context", "omitted") if name in answer} == around


@pytest.mark.parametrize(("answer_bytes", "most"), [(20 * 1024**2, AROUND_BYTES), (4096, 512)])
async def test_what_is_too_large_to_stand_beside_is_left_out(context: Any, answer_bytes: int, most: int) -> None:
    """And counted; small fields come first, in the order in which they were."""
    context.max_answer_bytes = answer_bytes
    value = {"page": "x" * most, "text": "y" * (most - 100), "rows": [1], "next": "c", "more": "z" * 100, "total": 9}
    answer = await answered(context, value)
    assert answer["context"] == {"next": "c", "more": "z" * 100, "total": 9}
    assert answer["omitted"] == 2
