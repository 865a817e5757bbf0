"""Lookup of calls by id: running calls, stored results, and the audit trail."""

import asyncio
from collections.abc import Callable
from typing import Any

from toold.protocol.tool_call import LOCAL, Principal
from toold.store import CallRow, StoredCall
from toold.tools import CallInfo


async def look_up(harness: Any, call_id: str) -> CallInfo:
    result: CallInfo = await harness.router.lookup.look_up(LOCAL, call_id)
    return result


async def test_a_running_call_is_found_with_its_progress(make_harness: Any, make_tool: Any) -> None:
    """For any session and tool; a call that waits for its permit says so."""
    go = asyncio.Event()

    async def work(arguments: Any, context: Any) -> str:
        context.progress("half", 1, 2)
        await go.wait()
        return "done"

    harness = make_harness([make_tool("work", work)], max_running=1)
    running = harness.submit(harness.session("one"), 1, "work")
    waiting = harness.submit(harness.session("two"), 2, "work")
    await harness.until(lambda: running.last_progress is not None)
    known = await look_up(harness, running.id)
    assert (known.state, known.tool) == ("running", "work")
    assert known.progress is not None
    assert (known.progress.message, known.progress.done) == ("half", 1)
    assert known.remaining_s is not None
    assert 0 < known.remaining_s <= 30
    assert (await look_up(harness, waiting.id)).state == "waiting"
    go.set()
    await harness.answered()


async def test_a_child_is_found_in_the_journal(make_harness: Any, make_tool: Any) -> None:
    """By its parent's run and its name, with its result, from any start of the daemon."""

    async def compose(arguments: Any, context: Any) -> str:
        await context.call("write", {}, name="one")
        return str(context.call_id)

    async def write(arguments: Any, context: Any) -> dict[str, int]:
        return {"written": 1}

    tools = [
        make_tool("compose", compose, read_only=False, open_world=True, orchestration=True),
        make_tool("write", write, read_only=False),
    ]
    harness = make_harness(tools)
    parent = (await harness.call(harness.session(), 1, "compose")).outputs[0].text
    for call_id in (f"{parent}/one", f"{parent}/one~0ab1"):
        known = await look_up(harness, call_id)
        assert (known.state, known.tool, known.outcome) == ("done", "write", "ok")
        assert known.result is not None
        assert known.result.structured == {"written": 1}


async def test_other_calls_are_found_in_the_audit_trail(make_harness: Any, row: Callable[..., CallRow]) -> None:
    """Without a result, which was sent to the client."""
    harness = make_harness()
    rows = {"e-1": row(id="e-1", tool="chat"), "e-2": row(id="e-2", tool="chat", outcome="TIMEOUT")}

    async def ended(call_id: str, child: tuple[str, str], principal: Principal) -> StoredCall | CallRow | None:
        return rows.get(call_id)

    harness.journal.find_ended_call = ended
    good, bad, nothing = [await look_up(harness, call_id) for call_id in ("e-1", "e-2", "e-3")]
    assert (good.state, good.outcome, good.tool, good.result) == ("done", "ok", "chat", None)
    assert (bad.state, bad.outcome) == ("failed", "TIMEOUT")
    assert nothing == CallInfo(id="e-3", state="unknown")
