"""``read_result``: pages of a retained result, and shaping of it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.tools import bind
from toold.tools.orchestration import read_result
from toold.tools.orchestration.read_result import CHARS, ROWS, row_page, text_page

MANY = [{"id": number} for number in range(250)]


@pytest.fixture
def read(context: Any) -> Any:
    """Return a function that reads a value that is retained as ``h``."""

    async def ask(value: Any, **arguments: Any) -> Any:
        context.kept = {"h": value}
        return (await read_result.function(bind(read_result, {"handle": "h", **arguments}), context)).data

    return ask


async def test_rows_are_returned_in_pages(read: Any) -> None:
    """The default page has 100 rows; the caller can set ``offset`` and ``limit``."""
    assert await read(MANY) == {"rows": MANY[:ROWS], "offset": 0, "total": 250, "next_offset": ROWS}
    assert await read(MANY, offset=240, limit=50) == {
        "rows": MANY[240:], "offset": 240, "total": 250, "next_offset": None,
    }  # fmt: skip
    assert (await read(MANY, offset=999))["rows"] == []


async def test_the_only_list_of_an_object_is_its_rows(read: Any, context: Any) -> None:
    """If there are several lists, ``at`` selects one."""
    assert (await read({"items": MANY, "total": 250}, limit=2))["rows"] == MANY[:2]
    two = {"a": [1, 2], "b": [3]}
    assert await read(two) == {"value": two}
    assert (await read(two, options={"at": "b"}))["rows"] == [3]
    assert context.shaping == {"list_at": "b", "rows_in": 1, "rows_matched": 1, "rows_out": 1}


async def test_a_retained_result_can_be_shaped(read: Any) -> None:
    """The matching rows are paged; aggregates and summaries are returned as values."""
    assert (await read(MANY, options={"filter": "id >= 248", "sort": ["-id"]}))["rows"] == [{"id": 249}, {"id": 248}]
    assert await read(MANY, options={"aggregate": {"max": ["id"]}}) == {"value": {"max": {"id": 249}}}
    assert (await read(MANY, options={"return_mode": "summary"}))["value"]["count"] == 250
    grouped = await read(MANY, options={"aggregate": {"group_by": ["id"], "count": True}}, limit=1)
    assert grouped["rows"] == [{"group": {"id": 0}, "count": 1}]


async def test_a_text_is_paged_by_characters(read: Any) -> None:
    """A long text is returned in pages too."""
    text = "é" * (CHARS + 5)
    assert await read(text) == {"text": "é" * CHARS, "offset": 0, "total": CHARS + 5, "next_offset": CHARS}
    assert (await read(text, offset=CHARS))["text"] == "é" * 5


async def test_a_text_within_a_result_is_paged(read: Any) -> None:
    """``at`` can select a text that is too large for one answer."""
    kept = {"result": "é" * (CHARS + 5)}
    at = {"options": {"at": "result"}}
    assert await read(kept, **at) == {"text": "é" * CHARS, "offset": 0, "total": CHARS + 5, "next_offset": CHARS}
    assert (await read(kept, **at, offset=CHARS + 3, limit=1))["text"] == "é"


@pytest.mark.parametrize("value", [None, 5, {"a": 1}])
async def test_a_value_that_is_not_a_list_is_returned_as_value(read: Any, value: Any) -> None:
    """Null, numbers and objects without lists are not paged."""
    assert await read(value) == {"value": value}


async def test_a_page_fits_an_answer(read: Any, context: Any) -> None:
    """The page ends before the maximum answer size and contains the next offset."""
    context.max_answer_bytes = 2_400
    page = await read(MANY)
    assert len(msgspec.json.encode(page["rows"])) <= 801
    assert 0 < len(page["rows"]) < ROWS
    assert page["next_offset"] == len(page["rows"])


async def test_a_value_that_does_not_fit_an_answer_is_rejected(read: Any, context: Any) -> None:
    """The value would otherwise be retained again and again. The error suggests ``at``, which works."""
    context.max_answer_bytes = 2_400
    kept = {"result": "x" * 900, "n": 1}
    with pytest.raises(InvalidArgumentsError, match=r"919 bytes are too many .* at selects a part") as caught:
        await read(kept)
    assert caught.value.executed == "no"
    assert (await read(kept, options={"return_mode": "summary"}))["value"]["fields"] == {
        "result": ["string"], "n": ["number"],
    }  # fmt: skip
    assert (await read(kept, options={"at": "result"}))["total"] == 900
    assert await read(kept, options={"at": "n"}) == {"value": 1}


async def test_invalid_options_are_rejected(read: Any) -> None:
    """The errors say that nothing was executed, so the caller can try again."""
    with pytest.raises(InvalidArgumentsError, match=r"options\.return_mode: .* execute_tool"):
        await read(MANY, options={"return_mode": "file"})
    with pytest.raises(InvalidArgumentsError, match=r"did you mean 'items'\?$"):
        await read({"items": []}, options={"at": "itms"})
    with pytest.raises(InvalidArgumentsError, match="several lists") as caught:
        await read({"a": [], "b": []}, options={"limit": 1})
    assert caught.value.executed == "no"


async def test_an_unknown_handle_is_not_found(context: Any) -> None:
    """The error is NotFoundError."""
    with pytest.raises(NotFoundError):
        await read_result.function(bind(read_result, {"handle": "nothing"}), context)


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 10), st.integers(1, 200))
def test_all_pages_together_contain_all_rows(rows: list[str], limit: int, room: int) -> None:
    """Reading page by page terminates and omits no row, for any limit and answer size."""
    seen: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = row_page(rows, offset, limit, room)
        seen += page["rows"]
        offset = page["next_offset"]
    assert seen == rows


@given(st.text(max_size=60), st.integers(1, 20), st.integers(1, 40))
def test_all_pages_together_contain_the_whole_text(text: str, limit: int, room: int) -> None:
    """Reading page by page terminates and omits no character."""
    seen = ""
    offset: int | None = 0
    while offset is not None:
        page = text_page(text, offset, limit, room)
        assert len(msgspec.json.encode(page["text"])) <= max(room, 8)
        seen += page["text"]
        offset = page["next_offset"]
    assert seen == text


def test_read_result_is_local() -> None:
    """The tool has no effects, so an interrupted call can be repeated."""
    assert read_result.local
