"""What is known of calls by their ids: those that run, those that are kept, those that the audit tells of."""

import asyncio
from collections.abc import Callable
from typing import Any

from toold.protocol.tool_call import LOCAL, Principal
from toold.store import CallRow, StoredCall
from toold.tools import CallInfo


async def look_up(home: Any, call_id: str) -> CallInfo:
    found: CallInfo = await home.router._execution._lookup.look_up(LOCAL, call_id)
    return found


async def test_a_call_that_runs_is_told_with_its_progress(house: Any, make: Any) -> None:
    """Whichever session made it, and of which tool; one that waits for its permit says so."""
    go = asyncio.Event()

    async def work(arguments: Any, context: Any) -> str:
        context.progress("half", 1, 2)
        await go.wait()
        return "done"

    home = house([make("work", work)], max_running=1)
    running = home.submit(home.session("one"), 1, "work")
    waiting = home.submit(home.session("two"), 2, "work")
    await home.until(lambda: running.last_progress is not None)
    known = await look_up(home, running.id)
    assert (known.state, known.tool) == ("running", "work")
    assert known.progress is not None
    assert (known.progress.message, known.progress.done) == ("half", 1)
    assert known.remaining_s is not None
    assert 0 < known.remaining_s <= 30
    assert (await look_up(home, waiting.id)).state == "waiting"
    go.set()
    await home.answered()


async def test_a_child_is_known_from_the_journal(house: Any, make: Any) -> None:
    """By its parent's run and its name, with its result, and whatever start of the daemon it was made in."""

    async def compose(arguments: Any, context: Any) -> str:
        await context.call("write", {}, name="one")
        return str(context.call_id)

    async def write(arguments: Any, context: Any) -> dict[str, int]:
        return {"written": 1}

    tools = [
        make("compose", compose, read_only=False, open_world=True, orchestration=True),
        make("write", write, read_only=False),
    ]
    home = house(tools)
    parent = (await home.call(home.session(), 1, "compose")).outputs[0].text
    for call_id in (f"{parent}/one", f"{parent}/one~0ab1"):
        known = await look_up(home, call_id)
        assert (known.state, known.tool, known.outcome) == ("done", "write", "ok")
        assert known.result is not None
        assert known.result.structured == {"written": 1}


async def test_of_other_calls_the_audit_tells_how_they_ended(house: Any, row: Callable[..., CallRow]) -> None:
    """Without a result, which went to the client that made them."""
    home = house()
    rows = {"e-1": row(id="e-1", tool="chat"), "e-2": row(id="e-2", tool="chat", outcome="TIMEOUT")}

    async def ended(call_id: str, child: tuple[str, str], principal: Principal) -> StoredCall | CallRow | None:
        return rows.get(call_id)

    home.journal.find_ended_call = ended
    good, bad, nothing = [await look_up(home, call_id) for call_id in ("e-1", "e-2", "e-3")]
    assert (good.state, good.outcome, good.tool, good.result) == ("done", "ok", "chat", None)
    assert (bad.state, bad.outcome) == ("failed", "TIMEOUT")
    assert nothing == CallInfo(id="e-3", state="unknown")
