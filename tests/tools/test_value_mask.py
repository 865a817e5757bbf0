"""Bound values are masked in results and errors."""

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
def test_a_secret_is_masked_in_each_encoding(form: str) -> None:
    """The raw, JSON, Python and URL forms are masked in text and in results."""
    mask = ValueMask([SECRET])
    assert mask.text(f"no location {form} here") == f"no location {MASKED} here"
    assert mask.result(result(f"at {form}.", {"url": f"/{form}/x"})).structured == {"url": f"/{MASKED}/x"}


@pytest.mark.parametrize("form", ["a\\/b(c)d", "a%2Fb(c)d", "a%2fb(c)d", "a%2fb%28c%29d"])
def test_a_secret_is_masked_in_the_encodings_of_other_languages(form: str) -> None:
    """JSON may escape slashes; URLs may use lower-case codes and encode fewer characters."""
    assert ValueMask(["a/b(c)d"]).text(f"at {form}!") == f"at {MASKED}!"


def test_a_secret_is_masked_in_every_type_of_block() -> None:
    """The address and the text of a resource are masked."""
    picture = ImageContent("iVBORw==", "image/png")
    resource = EmbeddedResource({"uri": f"crm://{quote(SECRET, safe='')}/a", "text": f"at {SECRET}"})
    masked = ValueMask([SECRET]).result(ToolResult(Metadata(0.0, Timings()), (TextContent(SECRET), picture, resource)))
    reported = EmbeddedResource({"uri": f"crm://{MASKED}/a", "text": f"at {MASKED}"})
    assert masked.outputs == (TextContent(MASKED), picture, reported)


def test_a_bound_value_is_masked_in_an_error() -> None:
    """The message and the details, including keys, are masked. A truncated value at the end of a text is masked too."""
    mask = ValueMask([SECRET], [PLAIN, 1234567])
    details = {"answer": [{"id": SECRET, PLAIN: 1234567}, True, None, 5]}
    reply = f"version {PLAIN}; {SECRET[:9]}…. {SECRET[:8]}. Or {SECRET[:10]}"
    error = mask.error(InvalidArgumentsError(reply, details=details).to_tool_error())
    assert error.message == f"version {MASKED}; {MASKED}…. {SECRET[:8]}. Or {MASKED}"
    assert error.details == {"answer": [{"id": MASKED, MASKED: MASKED}, True, None, 5]}


def test_a_value_from_the_configuration_is_masked_only_as_a_whole_value() -> None:
    """Such a value may be an ordinary word, so longer text that contains it is unchanged."""
    data = {"version": PLAIN, "added": f"{PLAIN}T10:00"}
    reported = ValueMask([], [PLAIN]).result(result(json.dumps(data), data))
    assert reported.structured == {"version": MASKED, "added": f"{PLAIN}T10:00"}
    assert json.loads(reported.text) == reported.structured


@given(st.text(min_size=MIN_CHARS, max_size=20), st.text(max_size=30), st.text(max_size=30))
def test_no_text_contains_the_value(value: str, before: str, after: str) -> None:
    """The value is masked in any surrounding text; a mask without values leaves text unchanged."""
    mask = ValueMask([value])
    assert value not in mask.text(before + value + after).replace(MASKED, "\0")
    if value not in MASKED:
        assert ValueMask([]).text(before) == before


def test_a_short_value_is_masked_only_as_a_whole_value() -> None:
    """A short value may occur in ordinary text, so the mask replaces it only where it is the whole value."""
    mask = ValueMask(["ab"])
    assert mask.text("cabs") == "cabs"
    assert mask.result(result("cabs", ["ab", "cab"])).structured == [MASKED, "cab"]


def test_repr_does_not_show_the_value() -> None:
    """The repr of a mask contains only the number of values."""
    assert repr(ValueMask([SECRET])) == "<ValueMask of 1>"
