"""Keeping bound values out of what is told."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from toold.protocol.error_codes import InvalidArgumentsError
from toold.protocol.tool_call import EmbeddedResource, ImageContent, Metadata, TextContent, Timings, ToolResult
from toold.tools.value_mask import MASKED, MIN_CHARS, ValueMask

SECRET = 'loc-7f"3\\é 9/x'
PLAIN = "2021-07-28"


def result(text: str, structured: object = UNSET) -> ToolResult:
    return ToolResult(Metadata(0.0, Timings()), (TextContent(text),), structured)


@pytest.mark.parametrize(
    "form", [SECRET, json.dumps(SECRET)[1:-1], repr(SECRET)[1:-1], quote(SECRET, safe=""), quote_plus(SECRET)]
)
def test_a_secret_is_hidden_in_each_form_that_a_writing_gives_it(form: str) -> None:
    """As it is, in JSON, in Python's words and in an address; in errors and in results."""
    mask = ValueMask([SECRET])
    assert mask.text(f"no location {form} here") == f"no location {MASKED} here"
    assert mask.result(result(f"at {form}.", {"url": f"/{form}/x"})).structured == {"url": f"/{MASKED}/x"}


@pytest.mark.parametrize("form", ["a\\/b(c)d", "a%2Fb(c)d", "a%2fb(c)d", "a%2fb%28c%29d"])
def test_a_secret_is_hidden_as_other_languages_write_it(form: str) -> None:
    """JSON may have a backslash before a slash, addresses small letters and fewer codes."""
    assert ValueMask(["a/b(c)d"]).text(f"at {form}!") == f"at {MASKED}!"


def test_a_secret_is_hidden_in_every_kind_of_block() -> None:
    """A resource has an address and a text of its own."""
    picture = ImageContent("iVBORw==", "image/png")
    resource = EmbeddedResource({"uri": f"crm://{quote(SECRET, safe='')}/a", "text": f"at {SECRET}"})
    masked = ValueMask([SECRET]).result(ToolResult(Metadata(0.0, Timings()), (TextContent(SECRET), picture, resource)))
    told = EmbeddedResource({"uri": f"crm://{MASKED}/a", "text": f"at {MASKED}"})
    assert masked.outputs == (TextContent(MASKED), picture, told)


def test_an_error_has_no_bound_value() -> None:
    """Neither its message nor its details, keys included, nor a part of a value that a cut has left at its end."""
    mask = ValueMask([SECRET], [PLAIN, 1234567])
    details = {"answer": [{"id": SECRET, PLAIN: 1234567}, True, None, 5]}
    said = f"version {PLAIN}; {SECRET[:9]}…. {SECRET[:8]}. Or {SECRET[:10]}"
    error = mask.error(InvalidArgumentsError(said, details=details).to_tool_error())
    assert error.message == f"version {MASKED}; {MASKED}…. {SECRET[:8]}. Or {MASKED}"
    assert error.details == {"answer": [{"id": MASKED, MASKED: MASKED}, True, None, 5]}


def test_what_the_configuration_shows_is_hidden_in_results_where_it_is_a_whole_value() -> None:
    """It may be any word: a date of the same day with a time behind it is another value."""
    data = {"version": PLAIN, "added": f"{PLAIN}T10:00"}
    told = ValueMask([], [PLAIN]).result(result(json.dumps(data), data))
    assert told.structured == {"version": MASKED, "added": f"{PLAIN}T10:00"}
    assert json.loads(told.text) == told.structured


@given(st.text(min_size=MIN_CHARS, max_size=20), st.text(max_size=30), st.text(max_size=30))
def test_no_text_has_the_value(value: str, before: str, after: str) -> None:
    """Whatever stands around it; and texts without values are as they were."""
    mask = ValueMask([value])
    assert value not in mask.text(before + value + after).replace(MASKED, "\0")
    if value not in MASKED:
        assert ValueMask([]).text(before) == before


def test_a_short_value_is_no_pattern() -> None:
    """It cannot be told from other text, so that only a value that it is all of is hidden."""
    mask = ValueMask(["ab"])
    assert mask.text("cabs") == "cabs"
    assert mask.result(result("cabs", ["ab", "cab"])).structured == [MASKED, "cab"]


def test_it_shows_nothing_of_itself() -> None:
    """Its repr has no value."""
    assert repr(ValueMask([SECRET])) == "<ValueMask of 1>"
