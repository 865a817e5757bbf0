"""``read_result``: a page of what is kept, or what is made of it."""

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
    """Read what is kept under ``h``."""

    async def ask(value: Any, **arguments: Any) -> Any:
        context.kept = {"h": value}
        return await read_result.function(bind(read_result, {"handle": "h", **arguments}), context)

    return ask


async def test_rows_come_page_by_page(read: Any) -> None:
    """A hundred, unless the caller says, from where it says."""
    assert await read(MANY) == {"rows": MANY[:ROWS], "offset": 0, "total": 250, "next_offset": ROWS}
    assert await read(MANY, offset=240, limit=50) == {
        "rows": MANY[240:], "offset": 240, "total": 250, "next_offset": None,
    }  # fmt: skip
    assert (await read(MANY, offset=999))["rows"] == []


async def test_the_one_list_of_an_object_is_its_rows(read: Any, context: Any) -> None:
    """As for every shaping; another is named by ``at``."""
    assert (await read({"items": MANY, "total": 250}, limit=2))["rows"] == MANY[:2]
    two = {"a": [1, 2], "b": [3]}
    assert await read(two) == {"value": two}
    assert (await read(two, options={"at": "b"}))["rows"] == [3]
    assert context.shaping == {"list_at": "b", "rows_in": 1, "rows_matched": 1, "rows_out": 1}


async def test_a_result_is_shaped_again(read: Any) -> None:
    """The rows that are left are paged; figures and summaries are values."""
    assert (await read(MANY, options={"filter": "id >= 248", "sort": ["-id"]}))["rows"] == [{"id": 249}, {"id": 248}]
    assert await read(MANY, options={"aggregate": {"max": ["id"]}}) == {"value": {"max": {"id": 249}}}
    assert (await read(MANY, options={"return_mode": "summary"}))["value"]["count"] == 250
    grouped = await read(MANY, options={"aggregate": {"group_by": ["id"], "count": True}}, limit=1)
    assert grouped["rows"] == [{"group": {"id": 0}, "count": 1}]


async def test_a_text_is_paged_by_characters(read: Any) -> None:
    """What a tool said in words may be long, too."""
    text = "é" * (CHARS + 5)
    assert await read(text) == {"text": "é" * CHARS, "offset": 0, "total": CHARS + 5, "next_offset": CHARS}
    assert (await read(text, offset=CHARS))["text"] == "é" * 5


async def test_a_text_within_a_result_is_paged_too(read: Any) -> None:
    """Where ``at`` leads to one: it may be most of what is kept, and too large for an answer."""
    kept = {"result": "é" * (CHARS + 5)}
    at = {"options": {"at": "result"}}
    assert await read(kept, **at) == {"text": "é" * CHARS, "offset": 0, "total": CHARS + 5, "next_offset": CHARS}
    assert (await read(kept, **at, offset=CHARS + 3, limit=1))["text"] == "é"


@pytest.mark.parametrize("value", [None, 5, {"a": 1}])
async def test_what_is_no_list_is_a_value(read: Any, value: Any) -> None:
    """Whatever it is."""
    assert await read(value) == {"value": value}


async def test_a_page_fits_into_an_answer(read: Any, context: Any) -> None:
    """It ends where the answer would be too large to be sent, and says where to go on."""
    context.max_answer_bytes = 2_400
    page = await read(MANY)
    assert len(msgspec.json.encode(page["rows"])) <= 801
    assert 0 < len(page["rows"]) < ROWS
    assert page["next_offset"] == len(page["rows"])


async def test_a_value_that_fits_into_no_answer_is_refused(read: Any, context: Any) -> None:
    """It would be kept as a file once more, for ever; what leads on is said, and does."""
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


async def test_wrong_options_are_told(read: Any) -> None:
    """What the result lacks as well; nothing was executed, so it may be asked again in another way."""
    with pytest.raises(InvalidArgumentsError, match=r"options\.return_mode: .* execute_tool"):
        await read(MANY, options={"return_mode": "file"})
    with pytest.raises(InvalidArgumentsError, match=r"did you mean 'items'\?$"):
        await read({"items": []}, options={"at": "itms"})
    with pytest.raises(InvalidArgumentsError, match="several lists") as caught:
        await read({"a": [], "b": []}, options={"limit": 1})
    assert caught.value.executed == "no"


async def test_an_unknown_handle_is_not_found(context: Any) -> None:
    """And nothing more is said of it."""
    with pytest.raises(NotFoundError):
        await read_result.function(bind(read_result, {"handle": "nothing"}), context)


@given(st.lists(st.text(max_size=20), max_size=30), st.integers(1, 10), st.integers(1, 200))
def test_pages_together_are_all_rows(rows: list[str], limit: int, room: int) -> None:
    """Whatever the limit and the room are, going on from page to page ends, and leaves none out."""
    seen: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        page = row_page(rows, offset, limit, room)
        seen += page["rows"]
        offset = page["next_offset"]
    assert seen == rows


@given(st.text(max_size=60), st.integers(1, 20), st.integers(1, 40))
def test_pages_together_are_the_whole_text(text: str, limit: int, room: int) -> None:
    """The same of characters."""
    seen = ""
    offset: int | None = 0
    while offset is not None:
        page = text_page(text, offset, limit, room)
        assert len(msgspec.json.encode(page["text"])) <= max(room, 8)
        seen += page["text"]
        offset = page["next_offset"]
    assert seen == text


def test_reading_is_local() -> None:
    """It changes nothing and reaches nobody, so a crash may forget it."""
    assert read_result.local
