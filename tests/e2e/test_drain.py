"""SIGTERM: notifications, answers, interruptions, and an end in time even with hanging calls."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

import httpx
import pytest
from toold.daemon.lifecycle import time_for_calls
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

LONG_S = 300.0
"""Longer than any of these tests: a call of this duration was not waited for."""


async def hold(peer: Any) -> None:
    """Start a call that keeps a drain open until it is cancelled or the grace period ends."""
    await peer.send(op="call_tool", request_id="hold", name="bad_hangs", arguments={"seconds": LONG_S})
    await peer.until("call_tool_ack", "hold")


async def hold_again(peer: Any) -> None:
    """Repeat the call of ``hold``: the next answer is not its answer."""
    await peer.send(op="call_tool", request_id="hold", name="bad_hangs", arguments={"seconds": LONG_S})
    await peer.send(op="ping", request_id="after")
    while (frame := await peer.receive())["op"] != "pong":
        assert frame["op"] == "progress", frame


async def release_calls(peer: Any) -> None:
    """Cancel the call that ``hold`` started."""
    await peer.send(op="cancel", request_id="hold")
    assert (await peer.until("call_tool_res", "hold"))["error"]["code"] == "CANCELLED"


async def closed(peer: Any) -> tuple[list[str], int | None]:
    """Read to the end. Returns the ops and the close code."""
    ops = []
    try:
        while True:
            ops.append((await peer.receive())["op"])
    except ConnectionClosed:
        return ops, peer.socket.close_code


async def ended(daemon: Any) -> int:
    """Wait for a stopping daemon without a second signal, which would kill it. Returns the exit code."""
    code: int = await asyncio.to_thread(daemon.process.wait, timeout=30)
    return code


async def test_a_drain_finishes_calls_and_rejects_new_ones(start_daemon: Any) -> None:
    """Running calls are answered; new calls, connections and probes are rejected; then all close with 1012."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S=str(LONG_S))
    async with daemon.peer(features=["ack", "going_away"]) as reported, daemon.peer() as plain:
        await hold(reported)
        await plain.send(op="call_tool", request_id="runs", name="echo", arguments={"text": "done", "delay_ms": 500})
        await plain.send(op="ping")
        await plain.until("pong")
        daemon.process.send_signal(signal.SIGTERM)
        assert (await reported.until("going_away"))["deadline_ms"] == time_for_calls(LONG_S) * 1000

        refused = (await reported.call("new", "echo", text="x"))["error"]
        assert (refused["code"], refused["executed"], refused["retryable"]) == ("SERVICE_UNAVAILABLE", "no", True)
        with pytest.raises(InvalidStatus) as rejected_before_accept:
            await connect(daemon.url).__aenter__()
        assert rejected_before_accept.value.response.status_code == 503
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{daemon.http_port}", trust_env=False, verify=False
        ) as http:
            ready = await http.get("/readyz")
            assert (ready.status_code, ready.json()["status"]) == (503, "stopping")
            assert ready.json()["reasons"]
            assert (await http.get("/healthz")).status_code == 200

        frame = await plain.receive()  # no shutdown notification: the client would not understand it
        assert (frame["request_id"], frame["outputs"][0]["text"]) == ("runs", "done")
        await release_calls(reported)
        assert await closed(reported) == ([], 1012)
        assert await closed(plain) == ([], 1012)


async def test_a_drain_accepts_repeats(start_daemon: Any) -> None:
    """A repeat of an ended call is replayed, one of a running call attaches; neither says that nothing ran."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S=str(LONG_S))
    async with daemon.peer(features=["ack", "going_away"]) as peer:
        await peer.call("done", "sim_effect", text="done")
        await hold(peer)
        daemon.process.send_signal(signal.SIGTERM)
        await peer.until("going_away")
        assert (await peer.call("done", "sim_effect", text="done"))["metadata"]["replayed"] is True
        await hold_again(peer)
        await release_calls(peer)
        assert await closed(peer) == ([], 1012)
    assert await ended(daemon) == 0
    assert await ended(daemon) == 0
    assert not daemon.tracebacks()


async def test_interrupted_calls_are_answered_before_the_close(start_daemon: Any, by: Any) -> None:
    """After the grace period a local call is retryable and a write is unknown, also over MCP."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="0.2")
    tools = ("write_hangs", "bad_hangs")
    async with daemon.peer(features=["ack"]) as peer, by("mcp over http", daemon) as http:
        for tool in tools:
            await peer.send(op="call_tool", request_id=tool, name=tool, arguments={"seconds": LONG_S})
        by_http = asyncio.create_task(http.answers(*((tool, {"seconds": LONG_S}) for tool in tools)))
        async with asyncio.timeout(30):
            while await in_use(peer, "running") < 4:
                await asyncio.sleep(0.01)
        daemon.process.send_signal(signal.SIGTERM)
        errors = {}
        for _ in range(2):
            frame = await peer.until("call_tool_res")
            errors[frame["request_id"]] = [frame["error"][field] for field in ("code", "executed", "retryable")]
        assert errors == {
            "write_hangs": ["OUTCOME_UNKNOWN", "maybe", False],
            "bad_hangs": ["SERVICE_UNAVAILABLE", "no", True],
        }
        reported = [[frame["error"][field] for field in ("code", "executed", "retryable")] for frame in await by_http]
        assert reported == [errors[tool] for tool in tools]
        assert await closed(peer) == ([], 1012)
    assert await ended(daemon) == 0


@pytest.mark.parametrize(
    ("limit", "tool", "arguments"),
    [
        ("running", "bad_ignores_cancel", {"seconds": LONG_S}),
        ("glm", "chat", {"prompt": "[[sim:hang]]", "model": "glm-4.6"}),
        ("kimi", "chat", {"prompt": "[[sim:hang]]", "model": "kimi-k2-thinking"}),
        ("glm", "chat", {"prompt": "[[sim:hang_after=2]]", "model": "glm-4.6"}),
    ],
    ids=["a tool that ignores its cancellation", "GLM hangs", "Kimi hangs", "GLM hangs in mid-stream"],
)
async def test_the_process_ends_in_time_with_hanging_calls(
    start_daemon: Any, limit: str, tool: str, arguments: dict[str, Any]
) -> None:
    """The caller of a hanging call gets one answer, and the process ends in time with exit code 0."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="0.2")
    async with daemon.peer(features=["ack", "stream"]) as peer:
        await peer.send(op="call_tool", request_id=1, name=tool, arguments=arguments, timeout_ms=LONG_S * 1000)
        await peer.until("call_tool_ack")
        async with asyncio.timeout(30):
            while not await in_use(peer, limit):
                await asyncio.sleep(0.01)
        daemon.process.send_signal(signal.SIGTERM)
        answer = await peer.until("call_tool_res", 1)
        assert answer["error"]["code"] in {"SERVICE_UNAVAILABLE", "OUTCOME_UNKNOWN"}
        assert (await closed(peer))[1] == 1012
    assert await ended(daemon) == 0
    assert not daemon.tracebacks()


async def in_use(peer: Any, limit: str) -> int:
    """The permits in use of the daemon (``running``) or of a provider."""
    limits = (await peer.status())["limits"]
    permits: dict[str, int] = limits["running"] if limit == "running" else limits["providers"][limit]
    return permits["in_use"]


async def test_ctrl_c_ends_it_like_sigterm(start_daemon: Any) -> None:
    """SIGINT drains too, and removes the address file and the lock."""
    daemon = start_daemon()
    async with daemon.peer() as peer:
        daemon.process.send_signal(signal.SIGINT)
        assert await closed(peer) == ([], 1012)
    assert await ended(daemon) == 0
    assert not (daemon.state / "daemon.json").exists()


async def test_a_second_signal_ends_immediately(start_daemon: Any) -> None:
    """A second signal skips the grace period and changes the exit code; an echo of the first signal does not count."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S=str(LONG_S))
    async with daemon.peer(features=["ack", "going_away"]) as peer:
        await hold(peer)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.process.send_signal(signal.SIGTERM)
        await peer.until("going_away")
        async with asyncio.timeout(20):
            while daemon.process.poll() is None:
                daemon.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.1)
        assert (await closed(peer))[1] == 1006
    assert await ended(daemon) == 128 + signal.SIGTERM


async def test_a_client_that_reads_nothing_does_not_delay_the_end(start_daemon: Any) -> None:
    """With its answers in full buffers, the daemon ends long before a ping would time out."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="0.2", TOOLD_PING_INTERVAL_S=str(LONG_S))
    async with daemon.peer() as watcher, daemon.peer() as deaf:
        deaf.socket.transport.pause_reading()
        for number in range(4):
            await deaf.send(op="call_tool", request_id=number, name="echo", arguments={"text": "x" * 8_000_000})
        async with asyncio.timeout(30):
            while (await watcher.status())["totals"]["by_tool"].get("echo", {}).get("calls") != 4:
                await asyncio.sleep(0.01)
        daemon.process.send_signal(signal.SIGTERM)
        assert await ended(daemon) == 0
        deaf.socket.transport.abort()


async def test_a_second_signal_works_while_a_tool_blocks_the_loop(start_daemon: Any) -> None:
    """The first signal cannot be handled while the tool blocks; the second ends the process."""
    daemon = start_daemon()
    async with daemon.peer(features=["ack"]) as peer:
        await peer.send(op="call_tool", request_id=1, name="bad_blocks", arguments={"seconds": LONG_S})
        with suppress(TimeoutError):  # the tool blocks the loop once the daemon no longer answers
            while True:
                await peer.send(op="ping")
                await peer.receive(timeout_s=1)
        daemon.process.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.6)  # longer than the time in which a second signal counts as an echo
        daemon.process.send_signal(signal.SIGTERM)
        assert await ended(daemon) == 128 + signal.SIGTERM
