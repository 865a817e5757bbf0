"""Detached calls on a running daemon: independent of their callers, across a kill and a stop."""

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
    """The written lines."""
    log: Path = daemon.state / "sim_effect.log"
    return log.read_text().splitlines() if log.exists() else []


async def detached(peer: Any, tool: str, **arguments: Any) -> str:
    """Detach a call. Returns its id."""
    answer = await peer.call(uuid4().hex, tool, detach=True, **arguments)
    assert answer["error"] is None, answer
    assert answer["structured"]["detached"] is True
    return str(answer["structured"]["call_id"])


async def known(peer: Any, call_id: str, tool: str = "call_status") -> dict[str, Any]:
    answer = await peer.call(uuid4().hex, tool, call_id=call_id)
    assert answer["error"] is None, answer
    reported: dict[str, Any] = answer["structured"]
    return reported


async def ended(peer: Any, call_id: str) -> dict[str, Any]:
    """Wait for its result."""
    async with asyncio.timeout(60):
        while (reported := await known(peer, call_id, "call_result"))["state"] in {"waiting", "running", "ending"}:
            await asyncio.sleep(0.05)
    return reported


async def test_a_detached_batch_resumes_after_a_kill(start_daemon: Any) -> None:
    """After the restart the batch resumes automatically: each item runs once, and interrupted ones are reported as
    unknown.
    """
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
        reported = await ended(peer, call_id)
        assert reported["state"] == "done"
        result = reported["result"]
        assert result["total"] == ITEMS
        assert (result["failed"], result["skipped"]) == (0, 0)
        assert result["unknown"] <= 10
        assert result["succeeded"] + result["unknown"] == ITEMS
        assert (await known(peer, call_id))["outcome"] == "ok"
    counts = Counter(effects(second))
    assert set(counts.values()) == {1}
    assert len(counts) >= result["succeeded"]
    assert second.stop() == 0


async def test_a_detached_batch_resumes_after_a_stop(start_daemon: Any) -> None:
    """Started items end within the grace period, none is unknown, and progress is available meanwhile."""
    first = start_daemon()
    items = [{"text": f"item-{number}", "delay_ms": 50} for number in range(100)]
    async with first.peer() as peer:
        call_id = await detached(peer, "execute_batch", tool_name="sim_effect", items=items)
        await until(lambda: len(effects(first)) >= 20)
        reported = await known(peer, call_id)
        assert (reported["state"], reported["tool"]) == ("running", "execute_batch")
        assert (reported["progress"]["total"], reported["progress"]["done"] > 0) == (100, True)
        assert first.stop() == 0
    cut = len(effects(first))
    assert cut < 100

    second = start_daemon()
    async with second.peer() as peer:
        result = (await ended(peer, call_id))["result"]
    assert (result["succeeded"], result["unknown"], result["skipped"]) == (100, 0, 0)
    assert Counter(effects(second)).most_common(1)[0][1] == 1
    assert second.stop() == 0


async def test_an_interrupted_write_is_retried_on_request(start_daemon: Any) -> None:
    """With ``on_unknown: retry`` interrupted items run again, and the result reports none as unknown."""
    first = start_daemon()
    items = [{"text": "first", "delay_ms": 0}, {"text": "cut", "delay_ms": 3000}]
    async with first.peer() as peer:
        call_id = await detached(
            peer, "execute_batch", tool_name="sim_effect", items=items, on_unknown="retry", options={"concurrency": 2}
        )
        await until(lambda: len(effects(first)) == 2)
        while not ((await known(peer, call_id)).get("progress") or {}).get("done"):
            await asyncio.sleep(0.01)  # otherwise the kill may interrupt the first item, which has had its effect
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
    second = start_daemon()
    async with second.peer() as peer:
        result = (await ended(peer, call_id))["result"]
    assert (result["succeeded"], result["unknown"]) == (2, 0)
    assert Counter(effects(second)) == {"first": 1, "cut": 2}
    assert second.stop() == 0


async def test_the_arguments_are_stored_until_the_call_ends(start_daemon: Any) -> None:
    """The database, readable only by its owner, has the arguments until the call ends."""
    daemon = start_daemon()
    secret = uuid4().hex
    async with daemon.peer() as peer:
        call_id = await detached(peer, "execute_batch", tool_name="echo", items=[{"text": secret, "delay_ms": 60_000}])
        assert (daemon.state / "toold.db").stat().st_mode & 0o777 == 0o600
        assert secret in stored(daemon)
        cancelled = await peer.call(uuid4().hex, "cancel_call", call_id=call_id)
        assert cancelled["structured"] == {"call_id": call_id, "cancelled": True}
        reported = await ended(peer, call_id)
        assert (reported["state"], reported["error"]["code"]) == ("failed", "CANCELLED")
        assert reported["error"]["details"]["so_far"]["total"] == 1
        assert stored(daemon) == ""
        repeat = (await peer.call(uuid4().hex, "cancel_call", call_id=call_id))["structured"]
        assert (repeat["cancelled"], repeat["state"]) == (False, "failed")
    assert daemon.stop() == 0


def stored(daemon: Any) -> str:
    """The stored arguments of detached calls."""
    connection = sqlite3.connect(f"file:{daemon.state / 'toold.db'}?mode=ro", uri=True)
    try:
        return "".join(bytes(row[0]).decode() for row in connection.execute("SELECT arguments FROM detached"))
    finally:
        connection.close()


async def test_a_detached_pipeline_continues_without_its_caller(daemon: Any) -> None:
    """The run outlives the connection; child calls are known by their ids, and other ids are unknown."""
    steps = [
        {"id": "one", "tool_name": "echo", "args": {"value": {"n": 1}, "delay_ms": 200}},
        {"id": "two", "tool_name": "chat", "args": {"prompt": "Say {{one.n}}."}},
    ]
    async with daemon.peer() as peer:
        call_id = await detached(peer, "execute_pipeline", steps=steps)
        peer.socket.transport.abort()
    async with daemon.peer() as peer:
        reported = await ended(peer, call_id)
        assert reported["result"]["success"] is True
        assert reported["result"]["run_id"] == call_id
        step = await known(peer, f"{call_id}/two", "call_result")
        assert step["state"] == "done"
        nothing = await known(peer, "never-1")
        assert nothing == {"call_id": "never-1", "state": "unknown"}
        refused = await peer.call(uuid4().hex, "call_result", call_id="never-1")
        assert refused["error"]["code"] == "NOT_FOUND"


async def test_items_come_from_a_handle(peer: Any) -> None:
    """The rows of a retained result are the items, shaped first on request."""
    rows = [{"text": f"row {number}"} for number in range(300)]
    options = {"return_mode": "file"}
    stored = await peer.call(uuid4().hex, "execute_tool", tool_name="echo", args={"value": rows}, options=options)
    items = {"handle": stored["structured"]["handle"], "options": {"filter": "text CONTAINS '9'"}}
    few = await peer.call(uuid4().hex, "execute_batch", tool_name="echo", items=items)
    expected = sum("9" in row["text"] for row in rows)
    assert few["structured"]["succeeded"] == expected
    many = await peer.call(uuid4().hex, "execute_batch", tool_name="echo", items={"handle": items["handle"]})
    assert "with detach at most 10,000" in many["error"]["message"]
    call_id = await detached(peer, "execute_batch", tool_name="echo", items={"handle": items["handle"]})
    assert (await ended(peer, call_id))["result"]["succeeded"] == 300


async def test_detached_calls_are_limited_per_principal(start_daemon: Any) -> None:
    """One more is rejected with a retry time, until one ends."""
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
