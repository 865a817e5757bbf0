"""Calls through a real process: concurrent, ordered within a call, each answered to its caller."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import AsyncExitStack, closing
from typing import Any
from uuid import uuid4

import pytest

HANG = "[[sim:hang]]"


async def test_chat_sends_a_file_to_each_vendor(caller: Any, daemon: Any) -> None:
    """chat passes through a transport, the vendor's SDK and HTTP, and the model gets the file."""
    (daemon.state.parent / "example.py").write_text("def answer():\n    return 42\n")
    for model, route in (("kimi-k2-thinking", "kimi"), ("glm-4.6", "glm")):
        frame = await caller.call(model, "chat", prompt="What does it return?", files=["example.py"], model=model)
        assert frame["error"] is None, frame["error"]
        text = frame["outputs"][0]["text"]
        assert "imulated" in text
        assert "example.py" in text
        assert "def answer():" in text
        metadata = frame["metadata"]
        assert (metadata["provider"], metadata["model"], metadata["simulated"]) == (route, model, True)
        assert metadata["usage"]["input_tokens"] > 0
        assert metadata["cost"] == {"amount": 0.0, "currency": "USD"}  # simulated completions cost nothing


async def test_a_plain_client_gets_only_hello_ack_and_answers(make_peer: Any) -> None:
    """During short calls, a client without features gets no other frames."""
    async with make_peer() as peer:
        assert peer.ack["op"] == "hello_ack"
        assert peer.ack["features"] == []
        await peer.send(op="call_tool", request_id=1, name="reports", arguments={})
        frame = await peer.receive()
        assert (frame["op"], frame["outputs"][0]["text"]) == ("call_tool_res", "one two")


async def test_a_plain_client_gets_one_heartbeat_for_all_calls(start_daemon: Any) -> None:
    """One progress frame per heartbeat for all running calls prevents its timeout."""
    daemon = start_daemon(TOOLD_PROGRESS_INTERVAL_S="0.4")
    async with daemon.peer() as peer:
        for number in range(3):
            await peer.send(op="call_tool", request_id=number, name="echo", arguments={"text": "x", "delay_ms": 1500})
        frames: list[dict[str, Any]] = []
        while sum(frame["op"] == "call_tool_res" for frame in frames) < 3:
            frames.append(await peer.receive())
        beats = [frame for frame in frames if frame["op"] == "progress"]
        assert beats
        assert {frame["op"] for frame in frames} == {"progress", "call_tool_res"}
        assert len(beats) <= 6
        assert len({frame["request_id"] for frame in beats}) == 1


async def test_the_frames_of_a_call_are_ordered(peer: Any) -> None:
    """Ack, progress, chunks and one answer, numbered from 1."""
    await peer.send(op="call_tool", request_id="a", name="reports", arguments={})
    frames = [await peer.receive()]
    while frames[-1]["op"] != "call_tool_res":
        frames.append(await peer.receive())
    assert [frame["op"] for frame in frames][:2] == ["call_tool_ack", "progress"]
    assert (frames[1]["seq"], frames[1]["message"], frames[1]["done"], frames[1]["total"]) == (1, "half", 1.0, 2.0)
    chunks = [frame for frame in frames if frame["op"] == "stream_chunk"]
    assert [chunk["seq"] for chunk in chunks] == list(range(1, len(chunks) + 1))
    assert "".join(chunk["text"] for chunk in chunks) == "one two" == frames[-1]["outputs"][0]["text"]


@pytest.mark.parametrize("model", ["kimi-k2-thinking", "glm-4.6"])
async def test_streamed_chunks_equal_the_answer(peer: Any, model: str) -> None:
    """The joined chunks are the answer's text."""
    await peer.send(op="call_tool", request_id="s", name="chat", arguments={"prompt": "Say it.", "model": model})
    text = ""
    while (frame := await peer.receive())["op"] != "call_tool_res":
        text += frame["text"] if frame["op"] == "stream_chunk" else ""
    assert frame["error"] is None
    assert text == frame["outputs"][0]["text"]


async def test_calls_of_a_connection_run_concurrently(peer: Any) -> None:
    """Two long calls overlap, and a ping does not wait for them."""
    for request_id in ("one", "two"):
        await peer.send(
            op="call_tool", request_id=request_id, name="echo", arguments={"text": request_id, "delay_ms": 800}
        )
    for _ in range(2):
        await peer.until("call_tool_ack")
    await peer.send(op="ping", request_id="p")
    order = [(await peer.receive()) for _ in range(3)]
    assert [frame["op"] for frame in order] == ["pong", "call_tool_res", "call_tool_res"]
    assert all(frame["metadata"]["latency_ms"] < 1600 for frame in order[1:])


async def test_list_tools_and_health_do_not_wait_for_calls(peer: Any) -> None:
    """Both are answered while calls run."""
    await peer.send(op="call_tool", request_id="slow", name="bad_hangs", arguments={})
    await peer.until("call_tool_ack")
    await peer.send(op="list_tools", request_id=1)
    listed = await peer.receive()
    assert listed["op"] == "list_tools_res"
    assert {"chat", "echo", "status", "version", "listmodels"} <= {tool["name"] for tool in listed["tools"]}
    assert all(set(tool) == {"name", "description", "inputSchema", "annotations"} for tool in listed["tools"])
    await peer.send(op="health", request_id=2)
    assert (await peer.receive())["health"]["status"] == "ready"
    await peer.send(op="cancel", request_id="slow")
    assert (await peer.until("call_tool_res", "slow"))["error"]["code"] == "CANCELLED"


async def test_cancelling_an_ended_or_unknown_call(peer: Any) -> None:
    """The answer distinguishes ended calls from unknown ids."""
    await peer.call("short", "echo", text="x")
    await peer.send(op="cancel", request_id="short")
    assert (await peer.until("cancel_res"))["status"] == "done"
    await peer.send(op="cancel", request_id="never")
    assert (await peer.until("cancel_res"))["status"] == "unknown"


@pytest.mark.parametrize("model", ["kimi-k2-thinking", "glm-4.6"])
async def test_cancel_mid_stream_closes_the_vendors_stream(peer: Any, model: str) -> None:
    """The call is answered immediately, and its provider's permit is released."""
    arguments = {"prompt": "Slowly. [[sim:stream_delay=0.5]]", "model": model}
    await peer.send(op="call_tool", request_id="s", name="chat", arguments=arguments)
    await peer.until("stream_chunk")
    await peer.send(op="cancel", request_id="s")
    assert (await peer.until("call_tool_res", "s"))["error"]["code"] == "CANCELLED"
    await all_permits_back(peer)


async def all_permits_back(peer: Any) -> None:
    """Wait until only this status call holds permits."""
    async with asyncio.timeout(10):
        while True:
            limits = (await peer.call(uuid4().hex, "status"))["structured"]["limits"]
            held = [limits["running"], *limits["providers"].values()]
            if not any(permits["in_use"] or permits["waiting"] or permits.get("abandoned") for permits in held):
                return
            await asyncio.sleep(0.05)


async def test_request_ids_are_scoped_to_a_session(make_peer: Any) -> None:
    """Two sessions with the same request id get separate results, even under the same session_id."""
    async with make_peer() as first, make_peer() as second:
        for peer, text in ((first, "one"), (second, "two")):
            await peer.send(op="call_tool", request_id=1, name="echo", arguments={"text": text, "delay_ms": 100})
        assert (await first.until("call_tool_res"))["outputs"][0]["text"] == "one"
        assert (await second.until("call_tool_res"))["outputs"][0]["text"] == "two"


async def test_the_same_id_again_attaches_or_conflicts(peer: Any) -> None:
    """A repeat of a running call attaches; other content under its id is rejected."""
    arguments = {"text": "x", "delay_ms": 500}
    for content in (arguments, arguments, {"text": "y"}):
        await peer.send(op="call_tool", request_id="same", name="echo", arguments=content)
    conflict = await peer.until("call_tool_res", "same")
    assert conflict["error"]["code"] == "REQUEST_ID_CONFLICT"
    assert (await peer.until("call_tool_res", "same"))["outputs"][0]["text"] == "x"
    await peer.send(op="ping")
    assert (await peer.receive())["op"] == "pong"  # and no other frame


async def test_repeating_an_ended_call_replays_its_answer(peer: Any) -> None:
    """The stored answer is sent, marked as replayed, without progress."""
    first = await peer.call("r", "reports")
    await peer.send(op="call_tool", request_id="r", name="reports", arguments={})
    repeat = await peer.receive()
    assert (repeat["op"], repeat["metadata"]["replayed"]) == ("call_tool_res", True)
    assert repeat["outputs"] == first["outputs"]
    conflict = await peer.call("r", "echo", text="other")
    assert conflict["error"]["code"] == "REQUEST_ID_CONFLICT"


async def test_call_status_and_acknowledge(peer: Any) -> None:
    """An acknowledged vendor call is expired and never runs again; an acknowledged local call is unknown."""
    await peer.send(op="call_tool", request_id=1, name="bad_hangs", arguments={})
    await peer.call("local", "echo", text="x")
    await peer.call("chat", "chat", prompt="hello", model="glm-4.6")
    ids = [1, "local", "chat", "never"]
    await peer.send(op="call_status", request_ids=ids)
    known = await peer.until("call_status_res")
    assert known["calls"] == {"1": "running", "local": "done", "chat": "done", "never": "unknown"}
    await peer.send(op="acknowledge", request_ids=["local", "chat", "never"])
    await peer.send(op="call_status", request_ids=ids)
    known = await peer.until("call_status_res")
    assert known["calls"] == {"1": "running", "local": "unknown", "chat": "expired", "never": "unknown"}
    expired = await peer.call("chat", "chat", prompt="hello", model="glm-4.6")
    assert expired["error"]["code"] == "RESULT_EXPIRED"
    await peer.send(op="cancel", request_id=1)
    await peer.until("call_tool_res", 1)


async def test_a_call_over_the_sessions_limit_is_rejected(make_peer: Any) -> None:
    """The 33rd call in flight gets OVER_CAPACITY with a retry time; other sessions are not affected."""
    async with make_peer() as other, make_peer() as peer:
        for number in range(33):
            await peer.send(op="call_tool", request_id=number, name="bad_hangs", arguments={})
        refused = await peer.until("call_tool_res")
        assert (refused["request_id"], refused["error"]["code"]) == (32, "OVER_CAPACITY")
        assert refused["error"]["retry_after_ms"] > 0
        assert (await other.call(1, "echo", text="x"))["error"] is None


async def test_a_disconnect_ends_its_read_only_calls(daemon: Any, make_peer: Any) -> None:
    """Their permits are released; on_disconnect keep lets a call continue."""
    async with make_peer() as peer:
        await peer.send(op="call_tool", request_id=1, name="bad_hangs", arguments={"seconds": 30})
        await peer.send(op="call_tool", request_id=2, name="chat", arguments={"prompt": HANG, "model": "glm-4.6"})
        await peer.send(
            op="call_tool", request_id=3, name="echo", arguments={"text": "x", "delay_ms": 300}, on_disconnect="keep"
        )
        await peer.call(4, "echo", text="x")
    async with make_peer() as peer:
        await all_permits_back(peer)
        async with asyncio.timeout(10):
            while True:
                recent = (await peer.call(uuid4().hex, "status", recent=50))["structured"]["recent"]
                outcomes = {row["tool"]: row["outcome"] for row in reversed(recent) if row["session"] == "e2e-test"}
                if outcomes.get("chat") == "CANCELLED" and outcomes.get("bad_hangs") == "CANCELLED":
                    break
                await asyncio.sleep(0.05)


async def test_a_hung_vendor_delays_no_other_call(start_daemon: Any, by: Any) -> None:
    """100 calls over all transports wait for GLM, others are answered, and the deadline releases all permits."""
    # The SDKs are loaded first: the time of a call would pass while it waits for them.
    daemon = start_daemon(TOOLD_GLM_CONCURRENCY="2", TOOLD_WARM_UP="true")
    hung = ("chat", {"prompt": HANG, "model": "glm-4.6"})
    routes = (("websocket", 20), ("websocket", 20), ("mcp over stdio", 20), ("mcp over http", 40))
    async with AsyncExitStack() as stack, daemon.peer() as watcher:
        callers = [(await stack.enter_async_context(by(route, daemon)), calls) for route, calls in routes]
        for timeout_ms in (
            5_000,
            20_000,
            80_000,
        ):  # on a busy machine, the first calls may end before the last ones wait
            asking = [
                asyncio.create_task(caller.answers(*[hung] * calls, timeout_ms=timeout_ms)) for caller, calls in callers
            ]
            if await all_wait(watcher, asking):
                break
            await asyncio.gather(*asking)
        else:
            pytest.fail("the 100 calls did not wait at the same time")
        assert (await watcher.call("e", "echo", text="x"))["error"] is None
        assert (await watcher.call("k", "chat", prompt="hello", model="kimi-k2-thinking"))["error"] is None
        answers = [answer for answers in await asyncio.gather(*asking) for answer in answers]
        assert len(answers) == 100
        assert {answer["error"]["code"] for answer in answers} <= {"TIMEOUT", "SERVICE_UNAVAILABLE"}
        await all_permits_back(watcher)


async def all_wait(watcher: Any, asking: Sequence["asyncio.Task[Any]"]) -> bool:
    """Whether the 100 calls use and wait for GLM at the same time, before they have ended."""
    while not all(task.done() for task in asking):
        if await glm(watcher) == (2, 98):
            return True
        await asyncio.sleep(0.02)
    return False


async def glm(watcher: Any) -> tuple[int, int]:
    """The number of calls that run at GLM, and that wait for it."""
    limit = (await watcher.status())["limits"]["providers"]["glm"]
    return limit["in_use"], limit["waiting"]


async def test_a_provider_limit_queues_calls(start_daemon: Any) -> None:
    """With a limit of two, at most two of six calls reach GLM at once, and all are answered."""
    daemon = start_daemon(TOOLD_GLM_CONCURRENCY="2")
    async with daemon.peer() as peer:
        for number in range(6):
            arguments = {"prompt": f"[[sim:delay=0.3]] number {number}", "model": "glm-4.6"}
            await peer.send(op="call_tool", request_id=number, name="chat", arguments=arguments)
        peak, answers = 0, 0
        while answers < 6:
            frame = await peer.call(uuid4().hex, "status")
            peak = max(peak, frame["structured"]["limits"]["providers"]["glm"]["in_use"])
            answers = frame["structured"]["totals"]["by_tool"].get("chat", {}).get("calls", 0)
        assert peak == 2


async def test_a_thousand_calls_may_wait(start_daemon: Any, by: Any) -> None:
    """Calls beyond the running limit wait and are answered, over any transport; none is rejected below the limit."""
    daemon = start_daemon(TOOLD_MAX_RUNNING="4")
    short = ("echo", {"text": "x", "delay_ms": 1})
    # 992 calls; 1,000 may wait. A session may have 32 in flight; each HTTP request is a separate session.
    routes = [("websocket", 32)] * 27 + [("mcp over stdio", 32), ("mcp over http", 96)]

    async def flood(route: str, calls: int) -> int:
        async with by(route, daemon) as caller:
            return sum(answer["error"] is None for answer in await caller.answers(*[short] * calls))

    assert sum(await asyncio.gather(*(flood(*route) for route in routes))) == 992


async def test_every_call_writes_one_audit_row(start_daemon: Any, by: Any) -> None:
    """Successful, failed and rejected calls over each transport write one row, with the shape of the arguments but not
    their content.
    """
    daemon = start_daemon()
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("echo", {"text": "a secret sentence"}),
        ("echo", {"txet": "x"}),
        ("nope", {}),
        ("chat", {"prompt": "a secret question", "model": "glm-4.6"}),
    )
    async with AsyncExitStack() as stack:
        plain = await stack.enter_async_context(
            daemon.peer(session_id="audited", client={"name": "suite", "version": "1"})
        )
        others = [await stack.enter_async_context(by(f"mcp over {route}", daemon)) for route in ("http", "stdio")]
        for caller in (plain, *others):
            for number, (name, arguments) in zip((1, "1", 2, 3), calls, strict=True):
                await caller.call(number, name, **arguments)
    assert daemon.stop() == 0
    with closing(sqlite3.connect(daemon.state / "toold.db")) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(call)")]
        rows = [dict(zip(columns, row, strict=True)) for row in database.execute("SELECT * FROM call ORDER BY rowid")]
    assert "secret" not in repr(rows)
    assert len({row["session_label"] for row in rows}) > 2
    for first in (0, 4, 8):
        of_one = rows[first : first + 4]
        assert [row["outcome"] for row in of_one] == ["ok", "VALIDATION_ERROR", "TOOL_NOT_FOUND", "ok"]
        assert of_one[3]["input_tokens"] > 0
    assert [row["request_id"] for row in rows[:4]] == ["1", '"1"', "2", "3"]
    assert all(row["session_label"] == "audited" and row["client"] == "suite 1" for row in rows[:4])
    assert len(rows) == 12
