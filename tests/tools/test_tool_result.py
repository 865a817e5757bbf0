"""Results: which values a tool may return, and which content the caller gets."""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from toold.protocol.error_codes import ToolExecutionError
from toold.protocol.tool_call import EmbeddedResource, ImageContent, TextContent
from toold.tools import ToolOutput, content
from toold.tools.tool_result import MAX_TEXT_BYTES

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


class Named(BaseModel):
    name: str = Field(serialization_alias="fullName")
    at: dt.date = dt.date(2026, 11, 22)


@dataclass
class Pair:
    left: Any
    right: Any


def text_of(returned: object) -> str:
    (block,), _ = content(returned, tool="t")
    assert isinstance(block, TextContent)
    return block.text


def test_a_string_becomes_text_only() -> None:
    """A returned string has no structured value."""
    assert content("Grüß Gott", tool="t") == ((TextContent("Grüß Gott"),), msgspec.UNSET)


def test_an_answer_separates_text_and_data() -> None:
    """The text of an Answer becomes a text block and its data the structured value; either may be missing."""
    assert content(ToolOutput("three", [1, 2, 3]), tool="t") == ((TextContent("three"),), [1, 2, 3])
    assert content(ToolOutput("three"), tool="t") == ((TextContent("three"),), msgspec.UNSET)
    assert content(ToolOutput(data="x"), tool="t") == ((TextContent('"x"'),), "x")
    assert content(ToolOutput("nothing", None), tool="t") == ((TextContent("nothing"),), None)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON.filter(lambda value: not isinstance(value, str)))
def test_json_data_is_also_its_text(value: Any) -> None:
    """Any JSON value is returned unchanged, and its text parses to the same value."""
    _, structured = content(value, tool="t")
    assert structured == value
    assert json.loads(text_of(value)) == value


@pytest.mark.parametrize(
    ("returned", "plain"),
    [
        (Named(name="Ada"), {"fullName": "Ada", "at": "2026-11-22"}),
        ([Pair((1, 2), {"a"})], [{"left": [1, 2], "right": ["a"]}]),
        ({1: dt.datetime(2026, 1, 2, tzinfo=dt.UTC)}, {"1": "2026-01-02T00:00:00Z"}),
        (Path("docs/tools.md"), "docs/tools.md"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (float("nan"), None),
    ],
)
def test_python_types_become_json(returned: object, plain: Any) -> None:
    """Models, dataclasses, tuples, sets, dates and similar types are converted to JSON."""
    assert content(returned, tool="t")[1] == plain
    assert json.loads(text_of(returned)) == plain


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ({f"key{n}": "x" * 7000 for n in range(12)}, "an object with 12 keys (key0, key1, key2, key3, key4, key5"),
        (["x" * 7000] * 1200, "an array of 1,200 items"),
        (ToolOutput(data="x" * 70_000), "a string of 70,000 characters"),
        ({"k" * 70_000: 1}, "an object with 1 keys (kkk"),
    ],
)
def test_long_data_is_summarised_in_the_text(value: Any, summary: str) -> None:
    """Data over 64 KiB is only in ``structured``; the text is a summary."""
    text = text_of(value)
    assert text.startswith(summary)
    assert "`structured` has all of it" in text
    assert len(text) < 1000


def test_the_text_is_the_whole_json_up_to_the_limit() -> None:
    """64 KiB of JSON are included in the text; one more byte is summarised."""
    assert len(text_of(ToolOutput(data="x" * (MAX_TEXT_BYTES - 2)))) == MAX_TEXT_BYTES
    assert "KiB as JSON" in text_of(ToolOutput(data="x" * (MAX_TEXT_BYTES - 1)))


def endless() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (object, "the value is of type object"),
        (lambda: {"rows": [1, {"handle": object()}]}, "rows[1].handle is of type object"),
        (lambda: Pair(1, (0, object())), "right[1] is of type object"),
        (lambda: ToolOutput("words", {"f": print}), "f is of type builtin_function_or_method"),
        (lambda: {"a": {(1, 2): 3}}, "a is of type dict with keys that are neither strings nor numbers"),
        (lambda: {"a": ["\ud800"]}, "a[0] is of type str and contains half of a surrogate pair"),
        (lambda: "\ud800", "half of a surrogate pair"),
        (lambda: ToolOutput("\ud800"), "half of a surrogate pair"),
        (endless, "nested too deeply, or contains itself"),
    ],
)
def test_a_value_that_is_not_json_is_reported_with_its_path(make: Callable[[], object], says: str) -> None:
    """The error names the tool, the type and the path of the value, and says that the tool was executed."""
    with pytest.raises(ToolExecutionError) as caught:
        content(make(), tool="odd")
    assert "tool 'odd' returned a value that is not JSON" in caught.value.message
    assert says in caught.value.message
    assert caught.value.executed == "yes"


def test_further_blocks_follow_the_text() -> None:
    """An image block may accompany text, accompany data or be the only content."""
    picture = ImageContent("iVBORw==", "image/png")
    assert content(ToolOutput("a picture", blocks=(picture,)), tool="t") == (
        (TextContent("a picture"), picture),
        msgspec.UNSET,
    )
    assert content(ToolOutput(data=1, blocks=(picture,)), tool="t") == ((TextContent("1"), picture), 1)
    assert content(ToolOutput(blocks=(picture,)), tool="t") == ((TextContent(""), picture), msgspec.UNSET)


def test_a_block_that_is_not_json_is_a_tool_error() -> None:
    """A content block that is not valid JSON causes the same error as invalid data."""
    with pytest.raises(ToolExecutionError, match="returned a value that is not JSON"):
        content(ToolOutput("x", blocks=(EmbeddedResource({"text": object()}),)), tool="t")
    with pytest.raises(ToolExecutionError, match="returned a value that is not JSON"):
        content(ToolOutput("x", blocks=(EmbeddedResource({"text": "\ud800"}),)), tool="t")
