"""A session with a hand-written server of an older revision: pages, noise and broken tools."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.error_codes import CallError
from toold.protocol.tool_call import TextContent

pytestmark = pytest.mark.process

PROGRAM = Path(__file__).parent / "legacy_program.py"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """The methods that the server received, one per line."""
    return tmp_path / "notes"


@pytest.fixture
async def listener(opened: Any, notes: Path) -> Any:
    return await opened(command=[sys.executable, str(PROGRAM), str(notes)])


async def test_all_pages_are_listed(listener: Any) -> None:
    """Invalid names are replaced, and a tool with an invalid schema is omitted, with the reason."""
    assert listener.listed == {"one", "two", "s_odd_name", "never"}
    answer = await listener.call("s_odd_name")
    assert (answer.content, answer.data) == ((TextContent("odd/name"),), {"name": "odd/name"})
    (note,) = listener.notes
    assert (note.kind, note.where) == ("omitted", "broken")
    assert "the schema is not a JSON Schema" in note.what


async def test_a_changed_listing_is_listed_again(listener: Any) -> None:
    """The new tool is quarantined."""
    assert await listener.call("one") == "changed"
    await listener.until(lambda: listener.source.quarantined == ("three",))


async def test_a_cancelled_call_is_cancelled_at_the_server(listener: Any, notes: Path) -> None:
    """By the notification of this revision, also on a timeout."""
    call = asyncio.create_task(listener.call("never"))
    await listener.until(lambda: "tools/call" in notes.read_text())
    call.cancel()
    await asyncio.wait([call])
    await listener.until(lambda: "notifications/cancelled" in notes.read_text())
    with pytest.raises(CallError) as late:
        await listener.call("never", timeout_s=0.3)
    assert late.value.code == "TIMEOUT"
    await listener.until(lambda: notes.read_text().count("notifications/cancelled") == 2)


async def test_one_session_serves_all_calls(listener: Any, notes: Path) -> None:
    """It is initialized once; a refresh lists the tools again."""
    await asyncio.gather(*(listener.call("two") for _ in range(20)))
    listener.source.refresh()
    await listener.until(lambda: notes.read_text().count("tools/list") >= 6)
    assert notes.read_text().split().count("initialize") == 1
    assert listener.published == 1
