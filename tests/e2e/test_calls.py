"""Calls through a real process: side by side, in order within one call, and each to its own caller."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack, closing
from typing import Any
from uuid import uuid4

import pytest

HANG = "[[sim:hang]]"


async def test_a_real_file_is_discussed_by_both_vendors(caller: Any, daemon: Any) -> None:
    """chat goes through a transport, the vendor's SDK and HTTP, and the model sees the file."""
    (daemon.state.parent / "example.py").write_text("def answer():\n    return 42\n")
    for model, road in (("kimi-k2-thinking", "kimi"), ("glm-4.6", "glm")):
        frame = await caller.call(model, "chat", prompt="What does it return?", files=["example.py"], model=model)
        assert frame["error"] is None, frame["error"]
        text = frame["outputs"][0]["text"]
        assert "imulated" in text
        assert "example.py" in text
        assert "def answer():" in text
        metadata = frame["metadata"]
        assert (metadata["provider"], metadata["model"], metadata["simulated"]) == (road, model, True)
        assert metadata["usage"]["input_tokens"] > 0
        assert metadata["cost"] == {"amount": 0.0, "currency": "USD"}  # what is simulated costs nothing


async def test_a_plain_client_gets_hello_ack_first_and_only_answers_of_short_calls(make_peer: Any) -> None:
    """A client without features is sent nothing that it does not know, while calls are short."""
    async with make_peer() as peer:
        assert peer.ack["op"] == "hello_ack"
        assert peer.ack["features"] == []
        await peer.send(op="call_tool", request_id=1, name="reports", arguments={})
        frame = await peer.receive()
        assert (frame["op"], frame["outputs"][0]["text"]) == ("call_tool_res", "one two")


async def test_a_plain_client_hears_of_its_long_calls_together(start_daemon: Any) -> None:
    """One progress frame a beat for all running calls, so that its time-out does not pass."""
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


async def test_ack_progress_pieces_and_answer_come_in_order(peer: Any) -> None:
    """For one call: ack, progress, chunks, then the one answer; numbered from 1."""
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
async def test_a_streamed_answer_is_the_same_as_the_whole(peer: Any, model: str) -> None:
    """The chunks joined are the answer's text."""
    await peer.send(op="call_tool", request_id="s", name="chat", arguments={"prompt": "Say it.", "model": model})
    text = ""
    while (frame := await peer.receive())["op"] != "call_tool_res":
        text += frame["text"] if frame["op"] == "stream_chunk" else ""
    assert frame["error"] is None
    assert text == frame["outputs"][0]["text"]


async def test_two_long_calls_overlap_and_a_ping_overtakes_them(peer: Any) -> None:
    """Calls of one connection run side by side, and nothing waits behind them."""
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


async def test_list_tools_and_health_are_answered_at_once(peer: Any) -> None:
    """They overtake whatever runs."""
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


async def test_cancel_of_what_does_not_run_says_what_is_known(peer: Any) -> None:
    """Done calls and unknown ids are told apart."""
    await peer.call("short", "echo", text="x")
    await peer.send(op="cancel", request_id="short")
    assert (await peer.until("cancel_res"))["status"] == "done"
    await peer.send(op="cancel", request_id="never")
    assert (await peer.until("cancel_res"))["status"] == "unknown"


@pytest.mark.parametrize("model", ["kimi-k2-thinking", "glm-4.6"])
async def test_cancel_mid_stream_closes_the_vendors_stream(peer: Any, model: str) -> None:
    """The call is answered at once, and its provider's permit comes back."""
    arguments = {"prompt": "Slowly. [[sim:stream_delay=0.5]]", "model": model}
    await peer.send(op="call_tool", request_id="s", name="chat", arguments=arguments)
    await peer.until("stream_chunk")
    await peer.send(op="cancel", request_id="s")
    assert (await peer.until("call_tool_res", "s"))["error"]["code"] == "CANCELLED"
    await all_permits_back(peer)


async def all_permits_back(peer: Any) -> None:
    """Return once nothing but this status call is in use."""
    async with asyncio.timeout(10):
        while True:
            limits = (await peer.call(uuid4().hex, "status"))["structured"]["limits"]
            held = [limits["running"], *limits["providers"].values()]
            if not any(permits["in_use"] or permits["waiting"] or permits.get("abandoned") for permits in held):
                return
            await asyncio.sleep(0.05)


async def test_the_same_request_id_in_two_sessions_means_two_calls(make_peer: Any) -> None:
    """Each gets its own result, also under the same session_id."""
    async with make_peer() as one, make_peer() as two:
        for peer, text in ((one, "one"), (two, "two")):
            await peer.send(op="call_tool", request_id=1, name="echo", arguments={"text": text, "delay_ms": 100})
        assert (await one.until("call_tool_res"))["outputs"][0]["text"] == "one"
        assert (await two.until("call_tool_res"))["outputs"][0]["text"] == "two"


async def test_the_same_id_again_attaches_or_conflicts(peer: Any) -> None:
    """A repeat of a running call adds no second answer; other content is refused."""
    arguments = {"text": "x", "delay_ms": 500}
    for content in (arguments, arguments, {"text": "y"}):
        await peer.send(op="call_tool", request_id="same", name="echo", arguments=content)
    conflict = await peer.until("call_tool_res", "same")
    assert conflict["error"]["code"] == "REQUEST_ID_CONFLICT"
    assert (await peer.until("call_tool_res", "same"))["outputs"][0]["text"] == "x"
    await peer.send(op="ping")
    assert (await peer.receive())["op"] == "pong"  # and nothing else


async def test_a_done_calls_id_replays_its_answer(peer: Any) -> None:
    """The same answer comes again, marked as replayed; its progress does not."""
    first = await peer.call("r", "reports")
    await peer.send(op="call_tool", request_id="r", name="reports", arguments={})
    again = await peer.receive()
    assert (again["op"], again["metadata"]["replayed"]) == ("call_tool_res", True)
    assert again["outputs"] == first["outputs"]
    conflict = await peer.call("r", "echo", text="other")
    assert conflict["error"]["code"] == "REQUEST_ID_CONFLICT"


async def test_call_status_tells_what_is_known_and_forget_forgets(peer: Any) -> None:
    """A vendor's call that is forgotten is expired and never runs again; a local one is as if it had never been."""
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


async def test_past_its_bound_a_session_is_told_at_once(make_peer: Any) -> None:
    """The 33rd call in flight gets OVER_CAPACITY with a time to come again; another session is not concerned."""
    async with make_peer() as other, make_peer() as peer:
        for number in range(33):
            await peer.send(op="call_tool", request_id=number, name="bad_hangs", arguments={})
        refused = await peer.until("call_tool_res")
        assert (refused["request_id"], refused["error"]["code"]) == (32, "OVER_CAPACITY")
        assert refused["error"]["retry_after_ms"] > 0
        assert (await other.call(1, "echo", text="x"))["error"] is None


async def test_a_disconnect_ends_its_read_only_calls(daemon: Any, make_peer: Any) -> None:
    """Their permits come back; on_disconnect keep lets a call run on."""
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


async def test_a_hung_vendor_gives_its_permits_back_and_delays_nobody(start_daemon: Any, by: Any) -> None:
    """100 calls by all transports wait for GLM; others are answered; after the deadline every count is back."""
    daemon = start_daemon(TOOLD_GLM_CONCURRENCY="2")
    hung = ("chat", {"prompt": HANG, "model": "glm-4.6"})
    roads = (("websocket", 20), ("websocket", 20), ("mcp over stdio", 20), ("mcp over http", 40))
    async with AsyncExitStack() as stack, daemon.peer() as watcher:
        callers = [(await stack.enter_async_context(by(road, daemon)), calls) for road, calls in roads]
        asking = [asyncio.create_task(one.answers(*[hung] * calls, timeout_ms=5000)) for one, calls in callers]
        async with asyncio.timeout(30):
            while await glm(watcher) != (2, 98):
                await asyncio.sleep(0.02)
        assert (await watcher.call("e", "echo", text="x"))["error"] is None
        assert (await watcher.call("k", "chat", prompt="hello", model="kimi-k2-thinking"))["error"] is None
        answers = [answer for answers in await asyncio.gather(*asking) for answer in answers]
        assert len(answers) == 100
        assert {answer["error"]["code"] for answer in answers} <= {"TIMEOUT", "SERVICE_UNAVAILABLE"}
        await all_permits_back(watcher)


async def glm(watcher: Any) -> tuple[int, int]:
    """How many calls are with GLM, and how many wait to be."""
    limit = (await watcher.status())["limits"]["providers"]["glm"]
    return limit["in_use"], limit["waiting"]


async def test_with_a_limit_of_two_six_calls_all_come_back(start_daemon: Any) -> None:
    """Never more than two at once reach GLM, and none is lost."""
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
    """Calls beyond what runs wait and are answered, by whichever transport; none is turned away below the bound."""
    daemon = start_daemon(TOOLD_MAX_RUNNING="4")
    short = ("echo", {"text": "x", "delay_ms": 1})
    # 992 calls, and the bound is 1,000 that wait. A session has 32 in flight, which a request by HTTP is alone.
    roads = [("websocket", 32)] * 27 + [("mcp over stdio", 32), ("mcp over http", 96)]

    async def flood(road: str, calls: int) -> int:
        async with by(road, daemon) as caller:
            return sum(answer["error"] is None for answer in await caller.answers(*[short] * calls))

    assert sum(await asyncio.gather(*(flood(*road) for road in roads))) == 992


async def test_every_call_leaves_one_audit_row(start_daemon: Any, by: Any) -> None:
    """Good, failed and refused calls alike, by each transport; with the shape of the arguments, not their content."""
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
        others = [await stack.enter_async_context(by(f"mcp over {road}", daemon)) for road in ("http", "stdio")]
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
