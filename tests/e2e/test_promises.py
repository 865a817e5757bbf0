"""The daemon's promises that no other module tests; docs/promises/ lists the tests of each promise."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

RESUME = ["ack", "resume"]


def back(peer: Any) -> dict[str, Any]:
    """The hello fields that resume a peer's session."""
    return {"features": RESUME, "resume": {"key": peer.ack["resume_key"]}}


def executed(daemon: Any) -> list[str]:
    """The lines of ``sim_effect``."""
    log = Path(daemon.state / "sim_effect.log")
    return log.read_text().split() if log.exists() else []


def kill(daemon: Any) -> None:
    """Kill the process, as a crash would."""
    daemon.process.kill()
    daemon.process.wait()


# --- one answer, and its value of executed ----------------------------------------------------------------------------

NO, NOT_YET, MAYBE, REPEATABLE, YES = ("no", False), ("no", True), ("maybe", False), ("maybe", True), ("yes", False)
"""``executed`` and ``retryable``."""


def scripted_chat(directives: str) -> dict[str, Any]:
    """A ``chat`` with a scripted answer of the simulated vendor; one attempt and a slow start fit into 30 s."""
    return {"name": "chat", "timeout_ms": 30_000, "arguments": {"prompt": f"[[sim:{directives}]]", "model": "glm-4.6"}}


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        ({"name": "echo", "arguments": [1]}, "INVALID_REQUEST", NO),
        ({"name": "ehco"}, "TOOL_NOT_FOUND", NO),
        ({"name": "echo", "arguments": {"txet": "x"}}, "VALIDATION_ERROR", NO),
        ({"name": "chat", "arguments": {"prompt": "x", "files": ["/etc/passwd"]}}, "PERMISSION_DENIED", NO),
        ({"name": "chat", "arguments": {"prompt": "x", "files": ["nope.py"]}}, "NOT_FOUND", NO),
        (scripted_chat("status=429 retry_after=60"), "RATE_LIMITED", NOT_YET),
        (scripted_chat("status=503"), "SERVICE_UNAVAILABLE", REPEATABLE),
        (scripted_chat("filter"), "PROVIDER_ERROR", NO),
        (scripted_chat("garbage"), "PROVIDER_ERROR", MAYBE),
        (scripted_chat("withhold"), "PROVIDER_ERROR", YES),
        (scripted_chat("too_long"), "CONTEXT_LENGTH_EXCEEDED", NO),
        ({"name": "bad_raises"}, "TOOL_EXECUTION_ERROR", NO),
        ({"name": "bad_returns"}, "TOOL_EXECUTION_ERROR", YES),
        ({"name": "bad_hangs", "timeout_ms": 50}, "TIMEOUT", NOT_YET),
        ({"name": "write_hangs", "timeout_ms": 50}, "TIMEOUT", MAYBE),
    ],
)
async def test_every_error_says_what_was_executed(peer: Any, call: dict[str, Any], code: str, message: object) -> None:
    """An error is retryable only if nothing ran, or if the tool is read-only or idempotent."""
    await peer.send(op="call_tool", request_id="e", **call)
    error = (await peer.until("call_tool_res", "e"))["error"]
    assert (error["code"], (error["executed"], error["retryable"])) == (code, message)
    await peer.send(op="ping")
    assert (await peer.receive())["op"] == "pong"  # and no second answer


async def test_errors_of_a_full_session_distinguish_running_and_waiting_calls(make_peer: Any, daemon: Any) -> None:
    """Of 32 writes eight run at once. A cancelled running one may have had its effect, a cancelled waiting one never
    ran, and the 33rd is rejected.
    """
    text = uuid4().hex
    async with make_peer() as peer:
        for number in range(33):
            arguments = {"text": text, "delay_ms": 60_000}
            await peer.send(op="call_tool", request_id=number, name="sim_effect", arguments=arguments)
        refused = await peer.until("call_tool_res")
        assert (refused["request_id"], refused["error"]["code"]) == (32, "OVER_CAPACITY")
        errors = {32: refused["error"]}
        async with asyncio.timeout(20):
            while executed(daemon).count(text) < 8:
                await asyncio.sleep(0.01)
        for number in (31, 0):
            await peer.send(op="cancel", request_id=number)
            errors[number] = (await peer.until("call_tool_res", number))["error"]
            assert errors[number]["code"] == "CANCELLED"
        reply = {number: (error["executed"], error["retryable"]) for number, error in errors.items()}
        assert reply == {32: NOT_YET, 31: NO, 0: MAYBE}
        for number in range(1, 31):
            await peer.send(op="cancel", request_id=number)
            await peer.until("call_tool_res", number)


async def test_errors_without_a_call_say_what_was_executed(daemon: Any, peer: Any) -> None:
    """The errors of an invalid frame and of a rejected hello have ``executed``."""
    await peer.socket.send("no JSON")
    errors = [(await peer.until("error"))["error"]]
    async with connect(daemon.url) as socket_of_a_stranger:
        await socket_of_a_stranger.send('{"op":"hello","token":"wrong"}')
        errors.append(json.loads(await socket_of_a_stranger.recv())["error"])
    reply = [(error["code"], error["executed"], error["retryable"]) for error in errors]
    assert reply == [("PROTOCOL_ERROR", "no", False), ("UNAUTHORIZED", "no", False)]


# --- at most one execution --------------------------------------------------------------------------------------------


async def test_a_repeat_in_an_old_format_is_replayed(peer: Any, daemon: Any) -> None:
    """Calls are equal if the resolved tool name and the arguments, in any order, are equal."""
    text = uuid4().hex
    await peer.call("w", "sim_effect", text=text, delay_ms=1)
    arguments = {"delay_ms": 1, "text": text}
    await peer.send(op="tool_call", id="w", tool={"name": "sim_effect_EXAI-WS-Editor"}, arguments=arguments)
    assert (await peer.until("call_tool_res", "w"))["metadata"]["replayed"] is True
    await peer.send(op="call_tool", request_id="w", name="sim_effect", arguments={"text": text})
    assert (await peer.until("call_tool_res", "w"))["error"]["code"] == "REQUEST_ID_CONFLICT"
    assert executed(daemon).count(text) == 1


# --- isolation of results ---------------------------------------------------------------------------------------------


async def test_the_same_call_in_two_sessions_runs_twice(make_peer: Any, daemon: Any) -> None:
    """Sessions share neither running calls nor stored results."""
    text = uuid4().hex
    call: dict[str, Any] = {"request_id": "w", "name": "sim_effect", "arguments": {"text": text, "delay_ms": 300}}
    async with make_peer(features=RESUME) as first, make_peer(features=RESUME) as second:
        for peer in (first, second):
            await peer.send(op="call_tool", **call)
            await peer.until("call_tool_ack", "w")
        for peer in (first, second):
            answer = await peer.until("call_tool_res", "w")
            assert "replayed" not in answer["metadata"]
    async with make_peer(features=RESUME) as three:
        assert "replayed" not in (await three.call("w", "sim_effect", **call["arguments"]))["metadata"]
    assert executed(daemon).count(text) == 3


async def test_a_session_cannot_access_calls_of_another(make_peer: Any) -> None:
    """cancel, forget and call_status do not find ids of another session, and change nothing there."""
    async with make_peer(features=RESUME) as owner, make_peer(features=RESUME) as other:
        await owner.call("done", "sim_effect", text="x")
        await owner.send(op="call_tool", request_id="runs", name="bad_hangs", arguments={})
        await owner.until("call_tool_ack", "runs")
        await other.send(op="acknowledge", request_ids=["done", "runs"])
        await other.send(op="cancel", request_id="runs")
        assert (await other.until("cancel_res"))["status"] == "unknown"
        await other.send(op="call_status", request_ids=["done", "runs"])
        assert (await other.until("call_status_res"))["calls"] == {"done": "unknown", "runs": "unknown"}
        await owner.send(op="call_status", request_ids=["done", "runs"])
        assert (await owner.until("call_status_res"))["calls"] == {"done": "done", "runs": "running"}
        await owner.send(op="cancel", request_id="runs")
        await owner.until("call_tool_res", "runs")


# --- resume -----------------------------------------------------------------------------------------------------------


async def test_resume_key_is_not_stored_in_plain_text(start_daemon: Any) -> None:
    """The key is not in any file of the state directory and not in the log, also after a resume; its stored hash still
    finds the session.
    """
    daemon = start_daemon(TOOLD_LOG_LEVEL="debug")
    async with daemon.peer(features=RESUME) as peer:
        await peer.call("w", "sim_effect", text="x")
    async with daemon.peer(**back(peer)) as resumed:
        await resumed.until("call_tool_res", "w")
    kill(daemon)
    files = [path for path in daemon.state.rglob("*") if path.is_file()]
    assert len(files) > 3
    key = peer.ack["resume_key"].encode()
    assert [path.name for path in (*files, daemon.log) if key in path.read_bytes()] == []
    daemon = start_daemon()
    async with daemon.peer(**back(peer)) as resumed:
        assert resumed.ack["resumed"]


async def test_an_old_answer_is_expired_not_unknown(start_daemon: Any) -> None:
    """A repeat gets RESULT_EXPIRED and does not run, before and after a crash."""
    daemon = start_daemon(TOOLD_RESULT_TTL_S="0.3")
    async with daemon.peer(features=RESUME) as peer:
        assert (await peer.call("w", "sim_effect", text="once"))["error"] is None
        await _expired(peer, "w")
        assert (await peer.call("w", "sim_effect", text="once"))["error"]["code"] == "RESULT_EXPIRED"
        kill(daemon)
    daemon = start_daemon(TOOLD_RESULT_TTL_S="0.3")
    async with daemon.peer(**back(peer)) as resumed:
        await _expired(resumed, "w")  # the answer may be back for the time that the crash lost
        assert (await resumed.call("w", "sim_effect", text="once"))["error"]["code"] == "RESULT_EXPIRED"
    assert executed(daemon) == ["once"]


async def _expired(peer: Any, request_id: str) -> None:
    """Wait until the answer is expired; until then it is done."""
    seen = set()
    async with asyncio.timeout(20):
        while "expired" not in seen:
            await peer.send(op="call_status", request_ids=[request_id])
            seen.add((await peer.until("call_status_res"))["calls"][request_id])
    assert seen <= {"done", "expired"}


async def test_the_oldest_answer_expires_at_the_size_limit(start_daemon: Any) -> None:
    """The size limit applies in memory and on disk; the id stays known, and later answers remain."""
    daemon = start_daemon(TOOLD_MAX_CACHED_RESULT_BYTES="2500")
    async with daemon.peer(features=RESUME) as peer:
        for number in range(4):
            await peer.call(number, "sim_effect", text=f"{number}" * 800)
        await peer.send(op="call_status", request_ids=[0, 3])
        assert (await peer.until("call_status_res"))["calls"] == {"0": "expired", "3": "done"}
        kill(daemon)
    daemon = start_daemon(TOOLD_MAX_CACHED_RESULT_BYTES="2500")
    async with daemon.peer(**back(peer)) as resumed:
        assert (await resumed.call(0, "sim_effect", text="0" * 800))["error"]["code"] == "RESULT_EXPIRED"
        assert (await resumed.call(3, "sim_effect", text="3" * 800))["metadata"]["replayed"] is True
    assert len(executed(daemon)) == 4


# --- order ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["kimi-k2-thinking", "glm-4.6"])
async def test_no_frame_waits_for_a_vendor_call(peer: Any, model: str) -> None:
    """While an SDK waits for its vendor, on the loop or in a thread, pings, calls and cancels are handled."""
    await peer.send(op="call_tool", request_id="c", name="chat", arguments={"prompt": "[[sim:hang]]", "model": model})
    provider = model.partition("-")[0]
    async with asyncio.timeout(20):
        while not (await peer.status())["limits"]["providers"][provider]["in_use"]:
            await asyncio.sleep(0.01)
    await peer.send(op="ping", request_id="p")
    await peer.until("pong", "p")
    assert (await peer.call("e", "echo", text="x"))["error"] is None
    await peer.send(op="cancel", request_id="c")
    assert (await peer.until("call_tool_res", "c"))["error"]["code"] == "CANCELLED"


# --- shutdown ---------------------------------------------------------------------------------------------------------


async def test_calls_interrupted_by_a_drain_are_reported_after_a_resume(start_daemon: Any) -> None:
    """If the client was disconnected at shutdown, the next daemon reports the outcome of each call."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="0.2")
    arguments = {"text": "cut", "delay_ms": 60_000}
    async with daemon.peer(features=RESUME) as peer:
        for name in ("sim_effect", "echo"):
            await peer.send(op="call_tool", request_id=name, name=name, arguments=arguments)
            await peer.until("progress", name)
        peer.socket.transport.abort()
    assert daemon.stop() == 0
    daemon = start_daemon()
    async with daemon.peer(**back(peer)) as resumed:
        reply = {}
        for _ in range(2):
            frame = await resumed.until("call_tool_res")
            reply[frame["request_id"]] = [frame["error"][field] for field in ("code", "executed", "retryable")]
    assert reply == {
        "sim_effect": ["OUTCOME_UNKNOWN", "maybe", False],
        "echo": ["SERVICE_UNAVAILABLE", "no", True],
    }
    assert executed(daemon) == ["cut"]


# --- bad input --------------------------------------------------------------------------------------------------------


DEEP = "[" * 5000
FIRST_FRAMES = ("no JSON", "[]", "{}", b"\x00", DEEP, '{"op":"hello","token":"wrong"}', '{"op":"hello","token":7}')
REQUESTS = (
    b"\x16\x03\x01 no HTTP\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"Name: value\r\n" * 1000 + b"\r\n",
)
LATER_FRAMES = ("{", "[]", b"\x00", DEEP, '{"op":"zip"}', '{"op":"call_tool"}', '{"op":"call_tool","name":"ehco"}')


async def test_each_bad_input_logs_exactly_one_line(start_daemon: Any) -> None:
    """Any invalid input, before or after the hello, logs one line and no traceback."""
    daemon = start_daemon(TOOLD_LOG_FORMAT="json")

    def lines() -> list[dict[str, Any]]:
        logged = [json.loads(line) for line in daemon.logged().splitlines() if line.startswith("{")]
        # A busy machine delays the event loop, whatever the input was.
        return [line for line in logged if line["event"] != "event loop delayed"]

    async def one_more(what: object, count: int) -> None:
        async with asyncio.timeout(10):
            while len(lines()) == count:
                await asyncio.sleep(0.01)
        assert len(lines()) == count + 1, (what, lines()[count:])

    for first in FIRST_FRAMES:
        count = len(lines())
        async with connect(daemon.url, compression=None) as stranger:
            await stranger.send(first)
            with suppress(ConnectionClosed):
                while True:
                    await stranger.recv()
        await one_more(first, count)
    for request in REQUESTS:
        count = len(lines())
        reader, writer = await asyncio.open_connection("127.0.0.1", daemon.port)
        writer.write(request)
        with suppress(OSError):
            await reader.read()
        writer.transport.abort()
        await one_more(request[:40], count)
    count = len(lines())
    with pytest.raises(InvalidStatus):
        await connect(daemon.url, additional_headers={"Origin": "https://example.org"}).__aenter__()
    await one_more("an origin", count)
    async with daemon.peer() as peer:
        for frame in LATER_FRAMES:
            count = len(lines())
            await peer.socket.send(frame)
            await peer.receive()
            await one_more(frame, count)
    assert daemon.stop() == 0
    assert not daemon.tracebacks()
