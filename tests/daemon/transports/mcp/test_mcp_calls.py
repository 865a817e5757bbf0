"""``tools/call`` over real sockets: progress, cancellation, errors, and cleanup."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from toold.daemon.app import Daemon
from toold.protocol.error_codes import OverCapacityError
from toold.tools import Tool

from .conftest import STATELESS, Connect, Serve, events, message_of, request

EVERY = pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])


class Gate:
    """A tool that waits for the test, and records how it ended."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.leave = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def __call__(self, arguments: Any, context: Any) -> str:
        self.entered.set()
        try:
            await self.leave.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "left"


async def either(arguments: Any, _: Any) -> Any:
    """Fails for multiples of three, and returns other numbers."""
    number = arguments.model_dump()["number"]
    await asyncio.sleep(0)
    if number % 10 < 3:
        raise OverCapacityError(f"no {number}")
    return {"number": number}


async def steps(_: Any, context: Any) -> str:
    """Reports progress three times."""
    for done in (1, 2, 3):
        context.progress(f"step {done}", done, 3)
        await asyncio.sleep(0.01)
    return "done"


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool], gate: Gate) -> Daemon:
    tools = [
        make_tool("wait", _function(gate)),
        make_tool("write", _function(gate), read_only=False),
        make_tool("either", either),
        make_tool("steps", steps),
    ]
    return await serve(*tools, TOOLD_DEFAULT_TOOLSET="full", TOOLD_PROGRESS_INTERVAL_S="0.2")


def _function(gate: Gate) -> Any:
    async def function(arguments: Any, context: Any) -> str:
        return await gate(arguments, context)

    return function


async def empty(daemon: Daemon) -> None:
    """Returns once no call or session is left."""
    async with asyncio.timeout(20):
        while daemon.router.accepted or len(daemon.router.sessions) or daemon.http_host.mcp._calls._running:
            await asyncio.sleep(0.01)


@EVERY
async def test_concurrent_calls_get_their_own_answers(connect: Connect, daemon: Daemon, revision: str) -> None:
    """A hundred at once, of which thirty fail: each is answered under its id, failures included."""
    client = connect(daemon, revision)
    results = await asyncio.gather(
        *(client.call("either", {"number": number}, request_id=f"id-{number}") for number in range(100))
    )
    for number, result in enumerate(results):
        if number % 10 < 3:
            assert result["isError"] is True
            assert result["structuredContent"]["code"] == "OVER_CAPACITY"
            assert f"no {number}" in result["content"][0]["text"]
        else:
            assert result["structuredContent"] == {"number": number}
    await empty(daemon)


async def test_json_rpc_ids_can_be_reused(connect: Connect, daemon: Daemon) -> None:
    """Many clients count from 1: a JSON-RPC id belongs to its request only."""
    first, other = connect(daemon), connect(daemon)
    results = await asyncio.gather(first.call("either", {"number": 5}), other.call("either", {"number": 6}))
    assert [result["structuredContent"] for result in results] == [{"number": 5}, {"number": 6}]


@EVERY
async def test_an_unknown_tool(connect: Connect, daemon: Daemon, revision: str) -> None:
    """A JSON-RPC error, as the specification requires, with similar names."""
    status, error = await connect(daemon, revision).error("tools/call", {"name": "eithr", "arguments": {}})
    assert (status, error["code"]) == (400 if revision == STATELESS else 200, -32602)
    assert error["data"]["details"]["suggestions"] == ["either"]


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 7},
        {"name": ""},
        {"name": "either", "arguments": []},
        {"name": "either", "_meta": {"toold/timeout_ms": 0}},
        {"name": "either", "_meta": {"toold/timeout_ms": "1"}},
    ],
)
async def test_invalid_params(connect: Connect, daemon: Daemon, params: dict[str, Any]) -> None:
    """The JSON-RPC error names the parameter."""
    _, error = await connect(daemon, "2025-06-18").error("tools/call", params)
    assert error["code"] == -32602
    assert "params." in error["message"]


async def test_a_timeout_in_meta(connect: Connect, daemon: Daemon) -> None:
    """The client sets the call's timeout."""
    result = await connect(daemon).call("wait", meta={"toold/timeout_ms": 50})
    assert result["structuredContent"]["code"] == "TIMEOUT"


@EVERY
async def test_progress(connect: Connect, daemon: Daemon, revision: str) -> None:
    """A client with a progress token gets one event per report, and the answer last."""
    params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": "mine"}}
    answer = await connect(daemon, revision).ask("tools/call", params, request_id=4)
    assert answer.headers["content-type"] == "text/event-stream"
    *reports, last = events(answer.text)
    assert [report["params"] for report in reports] == [
        {"progressToken": "mine", "progress": done, "message": f"step {done}", "total": 3} for done in (1, 2, 3)
    ]
    assert (last["id"], last["result"]["content"][0]["text"]) == (4, "done")


@pytest.mark.parametrize(
    ("accept", "token"), [("application/json", "mine"), ("application/json, text/event-stream", None)]
)
async def test_no_progress_without_a_token(connect: Connect, daemon: Daemon, accept: str, token: str | None) -> None:
    """A client without a token gets no progress, and one that accepts no events gets plain JSON."""
    params = {"name": "steps", "arguments": {}, "_meta": {"progressToken": token} if token else {}}
    answer = await connect(daemon).ask("tools/call", params, headers={"accept": accept})
    assert "notifications/progress" not in answer.text
    assert answer.headers["content-type"] in accept
    assert message_of(answer)["result"]["content"][0]["text"] == "done"


async def test_a_long_call_keeps_its_stream_alive(connect: Connect, daemon: Daemon, gate: Gate) -> None:
    """Also without a progress token, so that proxies do not close the connection."""
    message, headers = request("tools/call", {"name": "wait"}, revision=STATELESS)
    async with connect(daemon).http.stream("POST", "/mcp", json=message, headers=headers) as answer:
        lines = answer.aiter_lines()
        async with asyncio.timeout(20):
            assert (await anext(lines)).startswith(":")
            gate.leave.set()
            rest = [line async for line in lines if line.startswith("data: ")]
    assert json.loads(rest[0].removeprefix("data: "))["result"]["content"][0]["text"] == "left"


async def test_a_client_that_accepts_only_json(connect: Connect, daemon: Daemon, gate: Gate) -> None:
    """It waits for the answer."""
    request = connect(daemon).call("wait", headers={"accept": "application/json"})
    answer = asyncio.create_task(request)
    await gate.entered.wait()
    await asyncio.sleep(0.5)  # for one or two heartbeats
    gate.leave.set()
    assert (await answer)["content"][0]["text"] == "left"


async def hang_up(connect: Connect, daemon: Daemon, revision: str, tool: str, gate: Gate) -> None:
    """Sends a request and disconnects before the answer."""
    task = asyncio.create_task(connect(daemon, revision).call(tool))
    await gate.entered.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("tool", ["wait", "write"])
async def test_disconnecting_cancels_stateless_calls(connect: Connect, daemon: Daemon, gate: Gate, tool: str) -> None:
    """Even calls that write, and nothing is left of them."""
    await hang_up(connect, daemon, STATELESS, tool, gate)
    async with asyncio.timeout(20):
        await gate.cancelled.wait()
    await empty(daemon)


async def test_disconnecting_cancels_only_reads_in_older_revisions(
    connect: Connect, daemon: Daemon, gate: Gate
) -> None:
    """Calls that may write continue to their end."""
    await hang_up(connect, daemon, "2025-06-18", "write", gate)
    async with asyncio.timeout(20):
        while len(daemon.router.sessions):  # until the daemon has noticed
            await asyncio.sleep(0.01)
    assert daemon.router.accepted == 1
    gate.leave.set()
    await empty(daemon)
    assert not gate.cancelled.is_set()
    gate.entered.clear()
    gate.leave.clear()
    await hang_up(connect, daemon, "2025-06-18", "wait", gate)
    async with asyncio.timeout(20):
        await gate.cancelled.wait()


async def test_cancelling_by_id(connect: Connect, daemon: Daemon, gate: Gate) -> None:
    """A client with a label cancels its own call by id, and gets no answer; another client's call of the same id
    continues.
    """
    client = connect(daemon, "2025-06-18")
    mine, others = [(await client.ask("initialize")).headers["mcp-session-id"] for _ in range(2)]
    calls = [
        asyncio.create_task(
            client.ask(
                "tools/call",
                {"name": "wait", "arguments": {}},
                headers={"mcp-session-id": label, "accept": "application/json"},
            )
        )
        for label in (mine, others)
    ]
    async with asyncio.timeout(20):
        while daemon.router.accepted < 2:
            await asyncio.sleep(0.01)
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    headers = {"accept": "*/*", "mcp-protocol-version": "2025-06-18", "mcp-session-id": mine}
    assert (await client.http.post("/mcp", json=note, headers=headers)).status_code == 202
    assert (await calls[0]).status_code == 202
    assert (await calls[0]).content == b""
    assert not calls[1].done()
    gate.leave.set()
    assert (await calls[1]).json()["result"]["content"][0]["text"] == "left"
    await empty(daemon)


@pytest.mark.parametrize("request_id", [7, "x", None, {}, True])
async def test_cancelling_an_unknown_call(connect: Connect, daemon: Daemon, request_id: object) -> None:
    """Accepted without an error, as the specification requires."""
    client = connect(daemon, "2025-06-18")
    label = (await client.ask("initialize")).headers["mcp-session-id"]
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
    assert (await client.http.post("/mcp", json=note, headers={"mcp-session-id": label})).status_code == 202


async def test_calls_during_shutdown(connect: Connect, daemon: Daemon, gate: Gate) -> None:
    """Running calls are answered, and new ones get SERVICE_UNAVAILABLE."""
    client = connect(daemon)
    cut = asyncio.create_task(client.call("wait"))
    await gate.entered.wait()
    await daemon.router.close("The daemon is going down.", 0.0)
    assert (await cut)["structuredContent"]["code"] == "SERVICE_UNAVAILABLE"
    late = await client.call("either", {"number": 5})
    assert late["structuredContent"]["code"] == "SERVICE_UNAVAILABLE"
    assert late["structuredContent"]["retryable"] is True


async def test_a_large_answer_counts_as_unread_until_it_is_read(serve: Serve, make_tool: Any) -> None:
    """The call of a client that reads nothing is not done, alone or in a batch."""

    async def large(arguments: Any, context: Any) -> str:
        return "x" * 15_000_000

    daemon = await serve(make_tool("large", large), TOOLD_DEFAULT_TOOLSET="full")
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "large", "arguments": {}}}
    for message in (call, [call, {**call, "id": 2}]):
        body = json.dumps(message).encode()
        reader, writer = await asyncio.open_connection("127.0.0.1", daemon.http.port, limit=1024)
        writer.write(
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Accept: application/json\r\nMCP-Protocol-Version: 2025-03-26\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        writer.write(body)
        expected = 15_000_000 * (1 if message is call else 2)
        async with asyncio.timeout(20):
            while daemon.router.unread.total < expected:
                await asyncio.sleep(0.001)
        assert daemon.router.accepted == expected // 15_000_000
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert size > expected
        await reader.readexactly(size)
        writer.close()
        await empty(daemon)
        assert daemon.router.unread.total == 0
