"""A session with a server that is not the SDK's own: an older revision, pages, noise, and tools that are not well."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.error_codes import CallError
from toold.tools import Answer

pytestmark = pytest.mark.process

PROGRAM = Path(__file__).parent / "legacy_program.py"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """What the server was told, a method a line."""
    return tmp_path / "notes"


@pytest.fixture
async def shelf(opened: Any, notes: Path) -> Any:
    return await opened(command=[sys.executable, str(PROGRAM), str(notes)])


async def test_all_pages_are_listed(shelf: Any) -> None:
    """Names that no tool may have are put in order, and a tool whose schema is none is left out, with the reason."""
    assert shelf.listed == {"one", "two", "s_odd_name", "never"}
    assert await shelf.call("s_odd_name") == Answer("odd/name", {"name": "odd/name"})
    (note,) = shelf.notes
    assert (note.kind, note.where) == ("omitted", "broken")
    assert "the schema is no JSON Schema" in note.what


async def test_a_changed_listing_is_listed_again(shelf: Any) -> None:
    """The new tool waits for approval."""
    assert await shelf.call("one") == "changed"
    await shelf.until(lambda: shelf.source.quarantined == ("three",))


async def test_a_call_that_is_given_up_is_cancelled_there(shelf: Any, notes: Path) -> None:
    """By the notification that this revision has."""
    call = asyncio.create_task(shelf.call("never"))
    await shelf.until(lambda: "tools/call" in notes.read_text())
    call.cancel()
    await asyncio.wait([call])
    await shelf.until(lambda: "notifications/cancelled" in notes.read_text())
    with pytest.raises(CallError) as late:
        await shelf.call("never", timeout_s=0.3)
    assert late.value.code == "TIMEOUT"
    await shelf.until(lambda: notes.read_text().count("notifications/cancelled") == 2)


async def test_one_session_serves_all_calls(shelf: Any, notes: Path) -> None:
    """It is initialized once, whatever is called, and listed again when the operator asks."""
    await asyncio.gather(*(shelf.call("two") for _ in range(20)))
    shelf.source.refresh()
    await shelf.until(lambda: notes.read_text().count("tools/list") >= 6)
    assert notes.read_text().split().count("initialize") == 1
    assert shelf.puts == 1
