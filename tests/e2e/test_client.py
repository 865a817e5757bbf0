"""The client library against the real daemon."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from toold.client import ConnectionFailedError, MCPWebSocketClient
from toold.protocol.error_codes import CallCancelledError, CallTimeoutError, InvalidArgumentsError, ToolExecutionError
from toold.protocol.tool_call import Progress

MakeClient = Callable[..., MCPWebSocketClient]


@pytest.fixture
def make_client(daemon: Any, monkeypatch: pytest.MonkeyPatch) -> MakeClient:
    """Clients of the shared daemon, isolated from other daemons on the machine."""
    forget_this_machine(monkeypatch, daemon)

    def make(**options: Any) -> MCPWebSocketClient:
        return MCPWebSocketClient("127.0.0.1", daemon.port, **{"token": daemon.token, **options})

    return make


def forget_this_machine(monkeypatch: pytest.MonkeyPatch, daemon: Any) -> None:
    """Restrict this process's clients to the shared daemon's state directory."""
    for name in ("HOST", "PORT", "TOKEN"):
        monkeypatch.delenv(f"TOOLD_{name}", raising=False)
        monkeypatch.delenv(f"EXAI_WS_{name}", raising=False)
    monkeypatch.setenv("TOOLD_STATE_DIR", str(daemon.state))


@pytest.fixture
async def client(make_client: MakeClient) -> AsyncIterator[MCPWebSocketClient]:
    async with make_client() as connected:
        yield connected


async def test_a_client_without_arguments_finds_the_daemon_by_its_state_directory(
    daemon: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client without arguments reads the address and the token from the state directory."""
    forget_this_machine(monkeypatch, daemon)
    async with MCPWebSocketClient() as client:
        assert client.url == daemon.url
        assert client.hello is not None
        assert client.hello.features == ("ack", "stream", "resume", "going_away")
        assert {"chat", "echo"} <= {tool.name for tool in await client.list_tools()}
        assert (await client.health())["status"] == "ready"
        assert await client.ping() > 0


async def test_call_tool_returns_success_outputs_and_error(client: MCPWebSocketClient) -> None:
    """The tuple of old code, for a successful and a failed call."""
    assert await client.call_tool("echo", {"text": "hi"}) == (True, [{"type": "text", "text": "hi"}], None)
    success, outputs, error = await client.call_tool("bad_raises", {})
    assert (success, outputs) == (False, [])
    assert error is not None
    assert error.startswith("TOOL_EXECUTION_ERROR: ")
    assert "bad_raises" in error


async def test_call_returns_data_or_raises_by_code(client: MCPWebSocketClient) -> None:
    """A result has text, data and metadata; an error raises the exception of its code."""
    value = {"a": [1, None, 2.5, "ü"]}
    result = await client.call("echo", {"value": value})
    assert result.structured == value
    assert result.metadata.latency_ms > 0
    with pytest.raises(InvalidArgumentsError, match="txt"):
        await client.call("echo", {"txt": "x"})
    with pytest.raises(ToolExecutionError, match="bad_raises"):
        await client.call("bad_raises")
    with pytest.raises(CallTimeoutError, match=r"0\.1"):
        await client.call("bad_hangs", timeout=0.1)


async def test_execute_tool_with_metrics_accepts_both_signatures(client: MCPWebSocketClient) -> None:
    """The method accepts version and iteration, as in old scripts, and a timeout, as documented."""
    old = await client.execute_tool_with_metrics("echo", {"text": "x"}, "v1.2", iteration=3)
    assert (old["tool_name"], old["baseline_version"], old["iteration"]) == ("echo", "v1.2", 3)
    assert (old["status"], old["output_count"]) == ("success", 1)
    assert old["latency_ms"] > 0
    new = await client.execute_tool_with_metrics("bad_hangs", {}, 0.1)
    assert (new["status"], new["iteration"]) == ("error", 1)
    assert new["error"].startswith("TIMEOUT: ")
    assert "baseline_version" not in new


async def test_many_calls_at_once_each_get_their_own_answer(make_client: MakeClient) -> None:
    """200 calls with random delays over ten connections get the answers to their arguments."""
    delays = random.Random(7)  # noqa: S311 - to vary the order, and the same at each run

    async def one(client: MCPWebSocketClient, number: int) -> None:
        result = await client.call("echo", {"value": number, "delay_ms": delays.randrange(100)})
        assert result.structured == number

    async def twenty(session: int) -> None:
        async with make_client() as client:
            await asyncio.gather(*(one(client, session * 20 + number) for number in range(20)))

    await asyncio.gather(*(twenty(session) for session in range(10)))


async def test_progress_and_chunks_reach_their_callbacks(client: MCPWebSocketClient) -> None:
    """Reports precede the result, and the joined chunks are its first text."""
    reports: list[Progress] = []
    pieces: list[str] = []
    result = await client.call("reports", on_progress=reports.append, on_chunk=pieces.append)
    assert reports[0] == Progress("half", 1.0, 2.0)
    assert "".join(pieces) == result.text == "one two"
    pieces.clear()
    answer = await client.call("chat", {"prompt": "Stream this.", "model": "glm-4.6"}, on_chunk=pieces.append)
    assert len(pieces) > 1
    assert "".join(pieces) == answer.outputs[0]["text"]  # the second text has the id of the conversation


async def test_cancel_ends_a_running_call(client: MCPWebSocketClient) -> None:
    """The waiting task gets CANCELLED; an ended call cannot be cancelled."""
    running = asyncio.Event()
    arguments = {"text": "x", "delay_ms": 60_000}
    call = asyncio.create_task(client.call("echo", arguments, request_id="long", on_progress=lambda _: running.set()))
    await running.wait()
    assert await client.cancel("long")
    with pytest.raises(CallCancelledError):
        await call
    assert not await client.cancel("long")


async def test_cancelling_the_waiting_task_cancels_the_call(client: MCPWebSocketClient, make_peer: Any) -> None:
    """The daemon releases the permits of the call."""
    running = asyncio.Event()
    arguments = {"text": "x", "delay_ms": 60_000}
    call = asyncio.create_task(client.call("echo", arguments, on_progress=lambda _: running.set()))
    await running.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    async with make_peer() as watcher, asyncio.timeout(20):
        while (await watcher.status())["limits"]["running"]["in_use"]:
            await asyncio.sleep(0.01)


async def test_a_plain_client_is_served(make_client: MakeClient) -> None:
    """A client without features gets no acks or chunks, and its calls are answered."""
    async with make_client(features=()) as client:
        assert client.hello is not None
        assert client.hello.features == ()
        assert (await client.call("reports")).text == "one two"
        with pytest.raises(ValueError, match="stream"):
            await client.call("reports", on_chunk=print)


async def test_a_wrong_token_is_reported_without_retries(make_client: MakeClient) -> None:
    """connect returns False immediately with advice on the token; the context manager raises the error."""
    client = make_client(token="not-the-token-at-all")
    assert not await client.connect(max_retries=10, backoff_factor=100)
    assert isinstance(client.last_error, ConnectionFailedError)
    assert "toold token" in str(client.last_error)
    assert "not-the-token-at-all" not in str(client.last_error)
    assert (await client.call_tool("echo", {"text": "x"}))[0] is False
    with pytest.raises(ConnectionFailedError, match="UNAUTHORIZED"):
        async with client:
            pass
