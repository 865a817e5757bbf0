"""execute_tool on a running daemon: results are shaped, retained, interrupted, and never lost."""

import asyncio
import json
import stat
from typing import Any
from uuid import uuid4

ROWS = [{"id": number, "open": number % 3 == 0} for number in range(10)]


def effects(daemon: Any, mark: str) -> int:
    """The number of lines of ``sim_effect`` with a mark."""
    log = daemon.state / "sim_effect.log"
    return sum(mark in line for line in log.read_text().splitlines()) if log.exists() else 0


async def test_a_result_is_shaped(caller: Any) -> None:
    """The answer is the shaped value; the metadata has the shaping report and the tool's timings."""
    options = {"filter": "open = true", "sort": ["-id"], "limit": 2, "select_fields": ["id"]}
    frame = await caller.call(uuid4().hex, "execute_tool", tool_name="echo", args={"value": ROWS}, options=options)
    assert frame["error"] is None
    assert frame["structured"] == [{"id": 9}, {"id": 6}]
    assert json.loads(frame["outputs"][0]["text"]) == frame["structured"]
    shaping = {"list_at": "", "rows_in": 10, "rows_matched": 4, "rows_out": 2, "truncated": True}
    assert frame["metadata"]["shaping"] == shaping
    request = await caller.call(uuid4().hex, "execute_tool", tool_name="chat", args={"prompt": "Hi"})
    assert (request["metadata"]["provider_calls"], request["metadata"]["simulated"]) == (1, True)
    assert request["metadata"]["usage"]["input_tokens"] > 0


async def test_wrong_options_run_nothing(caller: Any, daemon: Any) -> None:
    """A wrong filter is rejected before a write runs."""
    mark = uuid4().hex
    frame = await caller.call(
        mark, "execute_tool", tool_name="sim_effect", args={"text": mark}, options={"filter": "a == 1"}
    )
    assert (frame["error"]["code"], frame["error"]["executed"]) == ("VALIDATION_ERROR", "no")
    assert effects(daemon, mark) == 0


async def test_a_result_that_cannot_be_shaped_is_retained(peer: Any, daemon: Any, make_peer: Any) -> None:
    """If the options do not fit the result, it is retained, and any session of the principal may read it."""
    mark = uuid4().hex
    frame = await peer.call(mark, "execute_tool", tool_name="sim_effect", args={"text": mark}, options={"limit": 1})
    error = frame["error"]
    assert (error["code"], error["executed"], error["retryable"]) == ("VALIDATION_ERROR", "yes", False)
    assert effects(daemon, mark) == 1
    async with make_peer(session_id="another-one") as other:
        page = await other.call(uuid4().hex, "read_result", handle=error["details"]["handle"])
    assert mark in page["structured"]["text"]


async def test_a_retained_result_has_a_handle(start_daemon: Any) -> None:
    """A retained result is readable only by the daemon's user, survives a restart and expires."""
    daemon = start_daemon()
    async with daemon.peer() as peer:
        options = {"filter": "open = true", "return_mode": "file", "format": "ndjson"}
        frame = await peer.call("f", "execute_tool", tool_name="echo", args={"value": ROWS}, options=options)
        stored = frame["structured"]
    assert (stored["count"], stored["format"]) == (4, "ndjson")
    path = daemon.state / "results" / "local" / f"{stored['handle']}.ndjson"
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == [0, 3, 6, 9]
    assert (stat.S_IMODE(path.stat().st_mode), path.stat().st_size) == (0o600, stored["bytes"])
    assert daemon.stop() == 0

    daemon = start_daemon()
    async with daemon.peer() as peer:
        page = (await peer.call("p", "read_result", handle=stored["handle"], offset=1, limit=2))["structured"]
        assert page == {"rows": [ROWS[3], ROWS[6]], "offset": 1, "total": 4, "next_offset": 3}
        unknown = (await peer.call("u", "read_result", handle="nothing-1"))["error"]
        assert unknown["code"] == "NOT_FOUND"
    assert daemon.stop() == 0

    daemon = start_daemon(TOOLD_RETAINED_RESULTS_KEEP_S="0.01")
    async with daemon.peer() as peer:
        expired = (await peer.call("e", "read_result", handle=stored["handle"]))["error"]
        assert expired["code"] == "RESULT_EXPIRED"
        async with asyncio.timeout(20):
            while path.exists():
                await asyncio.sleep(0.05)


async def test_an_answer_larger_than_a_frame_is_read_in_pages(peer: Any) -> None:
    """21 MB of text of any tool spill to a handle, which leads to the complete text."""
    frame = await peer.call(uuid4().hex, "bad_floods")
    assert (frame["error"], frame["metadata"]["spilled"]) == (None, True)
    handle = frame["structured"]["handle"]
    assert handle in frame["outputs"][0]["text"]
    last = {"handle": handle, "offset": 21 * 1024 * 1024 - 3}
    page = (await peer.call(uuid4().hex, "read_result", **last))["structured"]
    assert page == {"text": "xxx", "offset": last["offset"], "total": 21 * 1024 * 1024, "next_offset": None}


async def test_answers_over_the_spill_limit_are_retained(start_daemon: Any) -> None:
    """Only answers above the operator's limit spill, and pages stay within it."""
    daemon = start_daemon(TOOLD_SPILL_BYTES="20000")
    value = [{"n": number, "text": "x" * 90} for number in range(500)]
    async with daemon.peer() as peer:
        assert "spilled" not in (await peer.call("few", "echo", value=value[:50]))["metadata"]
        many = await peer.call("many", "echo", value=value)
        assert many["metadata"]["spilled"] is True
        seen: list[Any] = []
        offset: int | None = 0
        while offset is not None:
            page = await peer.call(f"p{offset}", "read_result", handle=many["structured"]["handle"], offset=offset)
            assert "spilled" not in page["metadata"]
            seen += page["structured"]["rows"]
            offset = page["structured"]["next_offset"]
    assert seen == value


async def test_a_full_disk_loses_no_sendable_result(start_daemon: Any) -> None:
    """If the file cannot be written, the error contains the result if it fits, or else the reason."""
    daemon = start_daemon()
    request = {"tool_name": "echo", "args": {"value": ROWS}, "options": {"limit": 1, "return_mode": "file"}}
    async with daemon.peer() as peer:
        (daemon.state / "results").mkdir()
        (daemon.state / "results" / "local").write_text("no directory")
        error = (await peer.call("f", "execute_tool", **request))["error"]
        assert (error["code"], error["executed"], error["retryable"]) == ("SERVICE_UNAVAILABLE", "yes", False)
        assert error["details"] == {"result": ROWS[:1]}
        assert str(daemon.state) not in error["message"]
        large = (await peer.call("l", "bad_floods"))["error"]
        assert (large["code"], large["executed"]) == ("RESULT_TOO_LARGE", "yes")
        assert "could not be stored" in large["message"]
        (daemon.state / "results" / "local").unlink()
        assert (await peer.call("again", "execute_tool", **request))["error"] is None


async def test_cancelling_ends_the_child_call(peer: Any, daemon: Any, command: Any) -> None:
    """The child call ends with its parent; meanwhile ``toold calls`` lists it after its parent."""
    request_id = uuid4().hex
    await peer.send(
        op="call_tool", request_id=request_id, name="execute_tool", arguments={"tool_name": "bad_hangs", "args": {}}
    )

    def shown() -> list[Any]:
        printed = command("calls", "--json", state=daemon.state)
        calls: list[Any] = json.loads(printed.stdout)["running"]
        return [call for call in calls if call["tool"] in {"execute_tool", "bad_hangs"}]

    async with asyncio.timeout(60):
        while len(calls := await asyncio.to_thread(shown)) < 2:
            await asyncio.sleep(0.05)
    parent, child = calls
    assert (child["id"], child["parent"]) == (f"{parent['id']}/bad_hangs", parent["id"])
    table = (await asyncio.to_thread(command, "calls", state=daemon.state)).stdout
    assert "└ bad_hangs" in table
    await peer.send(op="cancel", request_id=request_id)
    frame = await peer.until("call_tool_res", request_id)
    assert frame["error"]["code"] == "CANCELLED"
    recent = (await peer.status(recent=10))["recent"]
    ended = {call["id"]: call["outcome"] for call in recent if call["id"] in {parent["id"], child["id"]}}
    assert ended == {parent["id"]: "CANCELLED", child["id"]: "CANCELLED"}


async def test_progress_of_a_child_call_names_it(peer: Any) -> None:
    """The caller gets the tool's progress with the child's name, but not the chunks of its text."""
    request_id = uuid4().hex
    await peer.send(
        op="call_tool", request_id=request_id, name="execute_tool", arguments={"tool_name": "reports", "args": {}}
    )
    frames = [await peer.receive()]
    while frames[-1]["op"] != "call_tool_res":
        frames.append(await peer.receive())
    assert [frame["op"] for frame in frames] == ["call_tool_ack", "progress", "call_tool_res"]
    assert (frames[1]["message"], frames[1]["done"], frames[1]["total"]) == ("reports: half", 1, 2)
    assert frames[-1]["structured"] == "one two"


async def test_the_callers_timeout_applies_to_the_tool(peer: Any) -> None:
    """A longer call is interrupted, long before the tool's own timeout."""
    request_id = uuid4().hex
    arguments = {"tool_name": "bad_hangs", "args": {}}
    await peer.send(op="call_tool", request_id=request_id, name="execute_tool", arguments=arguments, timeout_ms=500)
    error = (await peer.until("call_tool_res", request_id))["error"]
    assert error["code"] == "TIMEOUT"


async def test_nested_calls_do_not_deadlock(start_daemon: Any) -> None:
    """Eight calls nested four levels deep end with one session permit and two daemon permits; a fifth fails."""
    daemon = start_daemon(TOOLD_MAX_RUNNING="2", TOOLD_MAX_RUNNING_PER_SESSION="1")

    def nested(depth: int) -> dict[str, Any]:
        inner: dict[str, Any] = {"tool_name": "echo", "args": {"value": "at the bottom"}}
        for _ in range(depth - 1):
            inner = {"tool_name": "execute_tool", "args": inner}
        return inner

    async with daemon.peer() as peer:
        for number in range(8):
            await peer.send(op="call_tool", request_id=number, name="execute_tool", arguments=nested(4))
        answers = [await peer.until("call_tool_res") for _ in range(8)]
        assert [answer["structured"] for answer in answers] == ["at the bottom"] * 8
        error = (await peer.call("deep", "execute_tool", **nested(5)))["error"]
        assert (error["code"], "nested 4 deep" in error["message"]) == ("VALIDATION_ERROR", True)
        running = (await peer.status())["limits"]["running"]
        assert (running["in_use"], running["waiting"]) == (0, 0)
