"""Detached calls on the daemon as it runs: told apart from their callers, over a kill and over a stop."""

import asyncio
import os
import signal
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.waiting import until

ITEMS = 2000


def effects(daemon: Any) -> list[str]:
    """The lines that were written so far."""
    log: Path = daemon.state / "sim_effect.log"
    return log.read_text().splitlines() if log.exists() else []


async def detached(peer: Any, tool: str, **arguments: Any) -> str:
    """Detach a call; its id."""
    answer = await peer.call(uuid4().hex, tool, detach=True, **arguments)
    assert answer["error"] is None, answer
    assert answer["structured"]["detached"] is True
    return str(answer["structured"]["call_id"])


async def known(peer: Any, call_id: str, tool: str = "call_status") -> dict[str, Any]:
    answer = await peer.call(uuid4().hex, tool, call_id=call_id)
    assert answer["error"] is None, answer
    told: dict[str, Any] = answer["structured"]
    return told


async def ended(peer: Any, call_id: str) -> dict[str, Any]:
    """Its result, once it has one."""
    async with asyncio.timeout(60):
        while (told := await known(peer, call_id, "call_result"))["state"] in {"waiting", "running", "ending"}:
            await asyncio.sleep(0.05)
    return told


async def test_a_kill_in_the_middle_of_two_thousand_items_repeats_none(start_daemon: Any) -> None:
    """After the restart it goes on by itself: each item ran once, and those that were cut off are told as unknown."""
    first = start_daemon()
    items = [{"text": f"item-{number}"} for number in range(ITEMS)]
    async with first.peer() as peer:
        call_id = await detached(
            peer, "execute_batch", tool_name="sim_effect", items=items, options={"concurrency": 10}
        )
    await until(lambda: len(effects(first)) >= ITEMS // 4)
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    before = len(effects(first))
    assert before < ITEMS

    second = start_daemon()
    async with second.peer() as peer:
        told = await ended(peer, call_id)
        assert told["state"] == "done"
        result = told["result"]
        assert result["total"] == ITEMS
        assert (result["failed"], result["skipped"]) == (0, 0)
        assert result["unknown"] <= 10
        assert result["succeeded"] + result["unknown"] == ITEMS
        assert (await known(peer, call_id))["outcome"] == "ok"
    counts = Counter(effects(second))
    assert set(counts.values()) == {1}
    assert len(counts) >= result["succeeded"]
    assert second.stop() == 0


async def test_a_stop_cuts_nothing_off_and_the_next_start_goes_on(start_daemon: Any) -> None:
    """What was begun ends within the grace period, and nothing is unknown; while it runs its progress can be asked."""
    first = start_daemon()
    items = [{"text": f"item-{number}", "delay_ms": 50} for number in range(100)]
    async with first.peer() as peer:
        call_id = await detached(peer, "execute_batch", tool_name="sim_effect", items=items)
        await until(lambda: len(effects(first)) >= 20)
        told = await known(peer, call_id)
        assert (told["state"], told["tool"]) == ("running", "execute_batch")
        assert (told["progress"]["total"], told["progress"]["done"] > 0) == (100, True)
        assert first.stop() == 0
    cut = len(effects(first))
    assert cut < 100

    second = start_daemon()
    async with second.peer() as peer:
        result = (await ended(peer, call_id))["result"]
    assert (result["succeeded"], result["unknown"], result["skipped"]) == (100, 0, 0)
    assert Counter(effects(second)).most_common(1)[0][1] == 1
    assert second.stop() == 0


async def test_a_write_that_was_cut_off_is_tried_again_where_that_is_said(start_daemon: Any) -> None:
    """With ``on_unknown: retry`` the items that a kill cut off run once more, and the result knows of none."""
    first = start_daemon()
    items = [{"text": "first", "delay_ms": 0}, {"text": "cut", "delay_ms": 3000}]
    async with first.peer() as peer:
        call_id = await detached(
            peer, "execute_batch", tool_name="sim_effect", items=items, on_unknown="retry", options={"concurrency": 2}
        )
        await until(lambda: len(effects(first)) == 2)
        while not ((await known(peer, call_id)).get("progress") or {}).get("done"):
            await asyncio.sleep(0.01)  # else the kill may cut off the first one, too, which has had its effect
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
    second = start_daemon()
    async with second.peer() as peer:
        result = (await ended(peer, call_id))["result"]
    assert (result["succeeded"], result["unknown"]) == (2, 0)
    assert Counter(effects(second)) == {"first": 1, "cut": 2}
    assert second.stop() == 0


async def test_what_it_was_asked_for_is_on_the_disk_until_it_ends(start_daemon: Any) -> None:
    """Its arguments are in the database, which is its owner's alone, and gone with its end."""
    daemon = start_daemon()
    secret = uuid4().hex
    async with daemon.peer() as peer:
        call_id = await detached(peer, "execute_batch", tool_name="echo", items=[{"text": secret, "delay_ms": 60_000}])
        assert (daemon.state / "toold.db").stat().st_mode & 0o777 == 0o600
        assert secret in stored(daemon)
        cancelled = await peer.call(uuid4().hex, "cancel_call", call_id=call_id)
        assert cancelled["structured"] == {"call_id": call_id, "cancelled": True}
        told = await ended(peer, call_id)
        assert (told["state"], told["error"]["code"]) == ("failed", "CANCELLED")
        assert told["error"]["details"]["so_far"]["total"] == 1
        assert stored(daemon) == ""
        again = (await peer.call(uuid4().hex, "cancel_call", call_id=call_id))["structured"]
        assert (again["cancelled"], again["state"]) == (False, "failed")
    assert daemon.stop() == 0


def stored(daemon: Any) -> str:
    """What the database has of detached calls' arguments."""
    connection = sqlite3.connect(f"file:{daemon.state / 'toold.db'}?mode=ro", uri=True)
    try:
        return "".join(bytes(row[0]).decode() for row in connection.execute("SELECT arguments FROM detached"))
    finally:
        connection.close()


async def test_a_pipeline_goes_on_without_its_caller(daemon: Any) -> None:
    """The connection goes, the run does not; its children are known by their ids, and what never was is unknown."""
    steps = [
        {"id": "one", "tool_name": "echo", "args": {"value": {"n": 1}, "delay_ms": 200}},
        {"id": "two", "tool_name": "chat", "args": {"prompt": "Say {{one.n}}."}},
    ]
    async with daemon.peer() as peer:
        call_id = await detached(peer, "execute_pipeline", steps=steps)
        peer.socket.transport.abort()
    async with daemon.peer() as peer:
        told = await ended(peer, call_id)
        assert told["result"]["success"] is True
        assert told["result"]["run_id"] == call_id
        step = await known(peer, f"{call_id}/two", "call_result")
        assert step["state"] == "done"
        nothing = await known(peer, "never-1")
        assert nothing == {"call_id": "never-1", "state": "unknown"}
        refused = await peer.call(uuid4().hex, "call_result", call_id="never-1")
        assert refused["error"]["code"] == "NOT_FOUND"


async def test_items_come_from_a_handle(peer: Any) -> None:
    """The rows of a result that is kept are the items, shaped first where that is asked."""
    rows = [{"text": f"row {number}"} for number in range(300)]
    options = {"return_mode": "file"}
    kept = await peer.call(uuid4().hex, "execute_tool", tool_name="echo", args={"value": rows}, options=options)
    items = {"handle": kept["structured"]["handle"], "options": {"filter": "text CONTAINS '9'"}}
    few = await peer.call(uuid4().hex, "execute_batch", tool_name="echo", items=items)
    expected = sum("9" in row["text"] for row in rows)
    assert few["structured"]["succeeded"] == expected
    many = await peer.call(uuid4().hex, "execute_batch", tool_name="echo", items={"handle": items["handle"]})
    assert "with detach at most 10,000" in many["error"]["message"]
    call_id = await detached(peer, "execute_batch", tool_name="echo", items={"handle": items["handle"]})
    assert (await ended(peer, call_id))["result"]["succeeded"] == 300


async def test_a_principal_has_so_many_and_no_more(start_daemon: Any) -> None:
    """One more is turned away with when to come again, until one of them ends."""
    daemon = start_daemon(TOOLD_MAX_DETACHED="1", TOOLD_GRACE_PERIOD_S="0.5")
    batch = {"tool_name": "echo", "items": [{"text": "x", "delay_ms": 60_000}]}
    async with daemon.peer() as peer:
        call_id = await detached(peer, "execute_batch", **batch)
        refused = (await peer.call(uuid4().hex, "execute_batch", detach=True, **batch))["error"]
        assert (refused["code"], refused["executed"]) == ("OVER_CAPACITY", "no")
        assert refused["retry_after_ms"] > 0
        await peer.call(uuid4().hex, "cancel_call", call_id=call_id)
        await ended(peer, call_id)
        await detached(peer, "execute_batch", **batch)
    assert daemon.stop() == 0
