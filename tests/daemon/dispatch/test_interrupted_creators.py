"""Calls that created a detached call, and had not been answered when the daemon died, on the real database."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from toold.daemon.dispatch import RunningCall
from toold.daemon.persistence.store_journal import StoreJournal
from toold.protocol.tool_call import ToolResult

from .paused_call_daemon import Daemon


@pytest.fixture
async def daemon(tmp_path: Path) -> AsyncIterator[Daemon]:
    daemon = Daemon(tmp_path / "toold.db")
    yield daemon
    if daemon.process is not None:
        await daemon.process.end()


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [("execute_batch", {"tool_name": "write", "items": [{"text": "a"}], "detach": True}), ("clerk", {})],
    ids=["detaches", "pauses"],
)
async def test_a_repeat_gets_the_answer_that_a_crash_kept_from_being_stored(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tool: str, arguments: dict[str, Any]
) -> None:
    """After a crash between the start of the detached call and the end of the call that created it, the repeat gets
    the same answer, with the id of the detached call, and nothing runs a second time.
    """
    end_call = StoreJournal.end_call

    async def lost(journal: StoreJournal, call: RunningCall, result: ToolResult, answer: bytes) -> None:
        if call.tool.name != tool or call.detached:
            await end_call(journal, call, result, answer)

    before = await daemon.start()
    with monkeypatch.context() as patch:
        patch.setattr(StoreJournal, "end_call", lost)
        harness = before.harness
        first = await harness.call(harness.session(key="key"), "r-1", tool, arguments=arguments)
    assert "call_id" in first.value
    after = await daemon.start()
    resumed = await after.harness.resume("key")
    assert resumed is not None
    repeat = after.harness.submit(resumed.session, "r-1", tool, arguments=arguments)
    assert isinstance(repeat, ToolResult)
    changes = {"expires_at"}  # the store's clock stood still
    assert {name: value for name, value in repeat.value.items() if name not in changes} == {
        name: value for name, value in first.value.items() if name not in changes
    }
    assert (json.loads(repeat.text), repeat.metadata.replayed) == (repeat.value, True)
    assert [row.outcome for row in await daemon.audit() if row.tool == tool][:1] == ["ok"]
    if tool == "execute_batch":
        assert (await after.ended(first.value["call_id"])).state == "done"
        assert daemon.office.written == ["a"]
    else:
        assert (await after.info(first.value["call_id"])).state == "paused"
