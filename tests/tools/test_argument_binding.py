"""Binding: which arguments match a model, which are rejected, and the error messages."""

import datetime as dt
import re
from enum import Enum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, SecretStr, field_validator
from toold.protocol.error_codes import InvalidArgumentsError
from toold.tools import Arguments, Tool, ToolContext, argument_binding, bind, load_registry, tool
from toold.tools.validation_errors import MAX_FIELDS_IN_DETAILS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


class Shape(Enum):
    ROUND = "round"
    SQUARE = "square"


class Point(Arguments):
    x: int
    y: int = 0


class Everything(Arguments):
    count: int = 0
    ratio: float = 0.0
    flag: bool = False
    words: list[str] = Field(default=[])
    word_or_words: str | list[str] = ""
    point: Point | None = None
    points: list[Point] = Field(default=[])
    by_name: dict[str, int] = Field(default={})
    shape: Shape = Shape.ROUND
    day: dt.date | None = None
    pair: tuple[int, str] = (0, "")
    loose: int = Field(default=0, strict=False)
    level: int = Field(default=1, ge=1, le=9)
    password: SecretStr | None = None
    pin: str = Field(default="0000", pattern="^[0-9]+$", json_schema_extra={"writeOnly": True})
    even: int = 0

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("give an even number")
        return value


class Label(Arguments):
    of: str


class Nested(Arguments):
    points: list[Point] = Field(default=[])
    by: dict[str, Label] = Field(default={})
    one: Label | Point | None = None


class Needy(Arguments):
    prompt: str
    count: int | None
    point: Point


class Bounded(BaseModel):
    words: list[str] = Field(max_length=3)


def tool_of(model: type[BaseModel]) -> Tool:
    async def do(arguments: Any, context: ToolContext) -> None:
        """Do it."""

    do.__annotations__["arguments"] = model
    return tool("do", read_only=True, open_world=False)(do)


EVERYTHING = tool_of(Everything)


def refused(arguments: dict[str, Any], model: type[BaseModel] = Everything) -> tuple[str, dict[str, str]]:
    """The message and the fields of the error that these arguments cause."""
    with pytest.raises(InvalidArgumentsError) as caught:
        bind(tool_of(model), arguments)
    assert caught.value.details is not None
    fields: dict[str, str] = caught.value.details["fields"]
    return caught.value.message, fields


@pytest.mark.parametrize(
    ("field", "value", "bound"),
    [
        ("count", 5, 5),
        ("ratio", 3, 3.0),
        ("shape", "square", Shape.SQUARE),
        ("day", "2026-11-22", dt.date(2026, 11, 22)),
        ("pair", [1, "a"], (1, "a")),
        ("point", {"x": 1}, Point(x=1)),
        ("loose", "5", 5),
    ],
)
def test_json_values_are_converted_to_the_declared_types(field: str, value: Any, bound: Any) -> None:
    """JSON values match the declared types; dates and enums are read from strings; a field may opt out of strict
    mode."""
    assert getattr(bind(EVERYTHING, {field: value}), field) == bound


@pytest.mark.parametrize(
    ("arguments", "field", "wrong"),
    [
        ({"count": "five"}, "count", 'should be an integer, not "five"'),
        ({"count": 1.5}, "count", "should be an integer, not 1.5"),
        ({"count": True}, "count", "should be an integer, not true"),
        ({"points": [{"x": None}]}, "points.0.x", "should be an integer, not null"),
        ({"ratio": "one"}, "ratio", 'should be a number, not "one"'),
        ({"flag": 1}, "flag", "should be true or false, not 1"),
        ({"words": 7}, "words", "should be an array, not 7"),
        ({"words": ["a", 7]}, "words.1", "should be a string, not 7"),
        ({"word_or_words": 3}, "word_or_words", "should be a string, not 3, or should be an array, not 3"),
        ({"point": 5}, "point", "should be an object, not 5"),
        ({"point": {"y": 2}}, "point.x", "is missing; it should be an integer"),
        ({"points": [{"x": 1}, {"x": []}]}, "points.1.x", "should be an integer, not an array"),
        ({"points": [{"x": 1, "yy": 2}]}, "points.0.yy", "is not an argument; did you mean 'y'?"),
        ({"by_name": {"a": {}}}, "by_name.a", "should be an integer, not an object"),
        ({"shape": "oval"}, "shape", "should be 'round' or 'square', not \"oval\""),
        ({"level": 12}, "level", "should be less than or equal to 9, not 12"),
        ({"even": 3}, "even", "is wrong: give an even number"),
        ({"coutn": 5}, "coutn", "is not an argument; did you mean 'count'?"),
    ],
)
def test_errors_name_the_field_and_its_expected_value(arguments: dict[str, Any], field: str, wrong: str) -> None:
    """The error names each wrong, missing or unknown argument by its path and states the expected type."""
    message, fields = refused(arguments)
    assert fields == {field: wrong}
    assert message == f"do: {field} {wrong}" + ("" if wrong.endswith("?") else ".")


def test_all_errors_are_reported_at_once() -> None:
    """One message lists missing, wrong and unknown arguments, so that one correction is enough."""
    message, fields = refused({"count": "x", "pompt": "hi"}, Needy)
    assert fields == {
        "prompt": "is missing; it should be a string",
        "count": 'should be an integer, not "x"',
        "point": "is missing; it should be an object",
        "pompt": "is not an argument; did you mean 'prompt'?",
    }
    assert all(field in message for field in fields)


def test_an_unknown_argument_without_a_close_match_gets_the_valid_names() -> None:
    """If no name is similar, the error lists the valid names of that object."""
    _, fields = refused({"prompt": "", "count": 1, "point": {"x": 1, "zzz": 1}, "zzz": 1}, Needy)
    assert fields == {
        "zzz": "is not an argument; its arguments are prompt, count, point",
        "point.zzz": "is not an argument; its arguments are x, y",
    }


def test_an_unknown_nested_argument_gets_the_names_of_its_own_object() -> None:
    """The error lists the names of the object that contains the argument; for a union it lists the names of each
    member."""
    _, fields = refused({"points": [{"x": 1, "zzz": 1}], "by": {"a": {"of": "b", "zzz": 1}}, "one": {"zzz": 1}}, Nested)
    assert {field: fields[field] for field in fields if "zzz" in field} == {
        "points.0.zzz": "is not an argument; its arguments are x, y",
        "by.a.zzz": "is not an argument; its arguments are of",
        "one.zzz": "is not an argument; its arguments are of, x, y",
    }
    assert fields["one.x"] == "is missing; it should be an integer"


def test_a_wrong_number_of_items_gets_a_plain_message() -> None:
    """The message states the maximum and the actual number of items, and does not use pydantic's wording."""
    message, _ = refused({"words": ["a"] * 4}, Bounded)
    assert message == "do: words should have at most 3 items, not 4."


def test_errors_do_not_mention_pydantic() -> None:
    """The message contains no URL, class name or Python type."""
    message, _ = refused({"point": 5, "points": 5, "by_name": 5, "pair": 5, "shape": 5, "day": 5})
    assert not re.search("pydantic|https?:|Point|Shape|Everything|dict|tuple", message)


@pytest.mark.parametrize("field", ["password", "pin"])
def test_a_secret_value_is_not_repeated(field: str) -> None:
    """Neither the message nor the details contain the value of a field that is marked as secret."""
    for value in (["hunter2", "s3cret"], 271828, "not-digits-271828") if field == "pin" else (271828, ["hunter2"]):
        message, fields = refused({field: value})
        assert set(fields) >= {field} or any(path.startswith(field) for path in fields)
        assert not re.search("hunter2|s3cret|271828", message + str(fields))


def test_a_long_value_is_not_repeated() -> None:
    """The error gives only the length of a long string, and says only that a large number is too large."""
    _, fields = refused({"count": "x" * 1000, "flag": 10**200, "words": [10**9000]})
    assert fields["count"] == "should be an integer, not a string of 1000 characters"
    assert fields["flag"] == "should be true or false, not a number far too large"
    assert fields["words.0"] == "should be a string, not a number far too large"


def test_many_errors_are_bounded() -> None:
    """Many wrong items cause a short message and bounded details."""
    message, fields = refused({"words": list(range(10_000))})
    assert len(fields) == MAX_FIELDS_IN_DETAILS
    assert message.endswith("and 56 more in details.fields.")
    assert len(message) < 1000


def test_many_unknown_arguments_are_bounded() -> None:
    """With 100,000 unknown arguments the error names a bounded number of them and still reports other errors."""
    _, fields = refused({f"x{number}": number for number in range(100_000)} | {"count": "x"})
    assert len(fields) == MAX_FIELDS_IN_DETAILS
    assert "count" in fields
    assert "x0" in fields


def test_a_long_unknown_name_is_truncated() -> None:
    """The message truncates a long argument name that the caller sent."""
    message, _ = refused({"n" * 100_000: 1})
    assert len(message) < 1000


def test_an_unpaired_surrogate_is_reported() -> None:
    """The error names the field with the invalid Unicode text and can itself be encoded as JSON."""
    assert refused({"count": "\ud800"})[1] == {"count": 'should be an integer, not "?"'}
    assert refused({"pin": "\ud800"})[1] == {"pin": "is not Unicode text: it contains half of a surrogate pair"}
    assert refused({"\udfff": 1})[0] == "do: a name is not Unicode text: it contains half of a surrogate pair."


def test_deeply_nested_arguments_are_rejected() -> None:
    """Arguments that are nested deeper than JSON readers support cause an ordinary validation error."""
    nested: Any = 1
    for _ in range(5000):
        nested = [nested]
    _, fields = refused({"words": nested})
    assert list(fields) == ["words.0"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from([*Everything.model_fields, *Needy.model_fields]) | st.text(), JSON, max_size=6),
    st.sampled_from([EVERYTHING, tool_of(Needy), *load_registry().tools]),
)
def test_any_json_is_bound_or_rejected(arguments: dict[str, Any], which: Tool) -> None:
    """For any JSON, ``bind`` returns a model or raises an InvalidArgumentsError that names fields."""
    refusal = None
    assert isinstance(which.arguments, type)
    try:
        assert isinstance(bind(which, arguments), which.arguments)
    except InvalidArgumentsError as error:
        refusal = error
    if refusal is not None:
        assert refusal.details is not None
        assert refusal.details["fields"]
        assert len(refusal.message) < 2500


def test_of_many_wrong_items_only_the_first_are_worded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wording the errors of 100,000 items would take seconds; the message is the same."""

    class Lists(Arguments):
        names: list[str]

    @tool("lists", read_only=True, open_world=False)
    async def lists(arguments: Lists, context: ToolContext) -> str:
        """Takes a list."""
        return ""

    numbers: list[int] = []
    invalid = argument_binding._invalid

    def record(tool: Tool, arguments: Any, errors: Any) -> InvalidArgumentsError:
        numbers.append(len(errors))
        return invalid(tool, arguments, errors)

    monkeypatch.setattr(argument_binding, "_invalid", record)
    for length in (MAX_FIELDS_IN_DETAILS + 1, 10_000):
        with pytest.raises(InvalidArgumentsError) as caught:
            bind(lists, {"names": [1] * length})
        assert "names.0 should be a string, not 1" in caught.value.message
    assert numbers == [MAX_FIELDS_IN_DETAILS + 1, MAX_FIELDS_IN_DETAILS]
    with pytest.raises(InvalidArgumentsError, match="9000 values are wrong"):
        bind(lists, {"names": ["right"] * 1000 + [1] * 9000})
