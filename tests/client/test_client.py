"""``MCPWebSocketClient``: its public behaviour across connections, and both ways to call."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from toold.client.client import FEATURES
from toold.protocol.daemon_address import DaemonAddress, encode_address
from toold.protocol.error_codes import ToolNotFoundError

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon

NOT_FOUND = {"code": "TOOL_NOT_FOUND", "message": "no tool 'x'", "executed": "no", "retryable": False}


async def test_async_with_connects_and_disconnects(daemon: ScriptedDaemon) -> None:
    """The client is connected inside the block only."""
    async with MCPWebSocketClient(port=daemon.port) as client:
        peer = await daemon.accept()
        assert repr(client).endswith(" connected>")
    assert not client.connected
    await asyncio.wait_for(peer.socket.wait_closed(), 10)
    assert peer.socket.close_code == 1000


async def test_async_with_raises_if_it_cannot_connect(daemon: ScriptedDaemon) -> None:
    """The block is not entered."""
    daemon.ack = {"ok": False, "error": NOT_FOUND}
    with pytest.raises(ConnectionFailedError, match="refused"):
        async with MCPWebSocketClient(port=daemon.port):
            raise AssertionError


async def test_the_hello_has_token_label_features_and_client(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    """The hello has them, and the ack is available afterwards."""
    client = MCPWebSocketClient(
        port=daemon.port, token="secret", session_id="label-1", client_name="test", workspace=tmp_path
    )
    async with client:
        hello = (await daemon.accept()).hello
        assert client.hello is not None
        assert client.hello.session_id == "label-1"
    assert (hello["token"], hello["session_id"], hello["features"]) == ("secret", "label-1", [*FEATURES])
    assert hello["client"]["name"] == "test"
    assert hello["client"]["workspace"] == str(tmp_path)


async def test_without_features_it_is_a_plain_client(daemon: ScriptedDaemon) -> None:
    """Its hello has only label and token."""
    async with MCPWebSocketClient(port=daemon.port, token="t", features=()):
        hello = (await daemon.accept()).hello
    assert set(hello) == {"op", "session_id", "token"}


async def test_a_generated_label_is_stable_over_reconnects(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """Without a label from the caller, every hello has the same generated one."""
    await client.connect()
    first = await daemon.accept()
    await client.disconnect()
    await client.connect()
    second = await daemon.accept()
    assert re.fullmatch(r"[A-Za-z0-9_-]{3,64}", first.hello["session_id"])
    assert first.hello["session_id"] == second.hello["session_id"]


async def test_the_daemons_notice_is_logged(daemon: ScriptedDaemon, caplog: pytest.LogCaptureFixture) -> None:
    """The log has the notice of the ack, for example about a changed label."""
    assert daemon.ack is not None
    daemon.ack |= {"session_id": "made-up", "session_id_generated": True, "notice": "the label was too long"}
    async with MCPWebSocketClient(port=daemon.port, session_id="x" * 100):
        assert "the label was too long" in caplog.text


async def test_the_toolset_is_in_each_hello(daemon: ScriptedDaemon) -> None:
    """A toolset that the caller sets is sent again after a reconnect."""
    async with MCPWebSocketClient(port=daemon.port, toolset="lean") as client:
        assert (await daemon.accept()).hello["toolset"] == "lean"
        await client.disconnect()
        await client.connect()
        assert (await daemon.accept()).hello["toolset"] == "lean"
    async with MCPWebSocketClient(port=daemon.port):
        assert "toolset" not in (await daemon.accept()).hello


def test_an_unknown_feature_is_refused() -> None:
    """Creating the client raises the error."""
    with pytest.raises(ValueError, match="tools_changed"):
        MCPWebSocketClient(features=("ack", "tools_changed"))


def test_an_invalid_port_is_refused() -> None:
    """Creating the client raises the error."""
    with pytest.raises(ValueError, match="port"):
        MCPWebSocketClient(port=99999)


async def test_the_running_daemon_is_found_by_its_state_directory(
    daemon: ScriptedDaemon, bare_environment: Path
) -> None:
    """When the client connects, if host, port and token are not set."""
    client = MCPWebSocketClient()
    assert client.url == "ws://127.0.0.1:8079/"
    bare_environment.mkdir()
    here = DaemonAddress(1, "127.0.0.1", daemon.port, 1, tls=False, auth=True, version="1")
    (bare_environment / "daemon.json").write_bytes(encode_address(here))
    (bare_environment / "token").write_text("from the directory")
    async with client:
        assert (await daemon.accept()).hello["token"] == "from the directory"


async def test_an_environment_that_became_invalid_fails_the_connect(
    client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``last_error`` names the variable; nothing is raised."""
    monkeypatch.setenv("TOOLD_HOST", "two words")
    assert not await client.connect()
    assert "two words" in str(client.last_error)


async def test_connect_makes_max_retries_attempts(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """Then it returns False, with the reason in ``last_error``."""
    error = {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}
    daemon.ack = {"ok": False, "error": error}
    assert await client.connect(max_retries=3, backoff_factor=0.01) is False
    assert daemon.connections == 3
    assert "full" in str(client.last_error)


async def test_connect_succeeds_once_the_daemon_accepts(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """``connect`` is repeated while the daemon is full."""
    good, error = daemon.ack, {"code": "OVER_CAPACITY", "message": "full", "executed": "no", "retryable": True}
    daemon.ack = {"ok": False, "error": error}
    connecting = asyncio.create_task(client.connect(max_retries=50, backoff_factor=0.01))
    await daemon.accept()
    daemon.ack = good
    assert await connecting is True
    assert client.connected


async def test_a_wrong_token_is_not_retried(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """Permanent failures end the attempts."""
    error = {"code": "UNAUTHORIZED", "message": "wrong token", "executed": "no", "retryable": False}
    daemon.ack = {"ok": False, "error": error}
    assert await client.connect(max_retries=3) is False
    assert daemon.connections == 1


@pytest.mark.parametrize("max_retries", [0, 1])
async def test_connect_makes_one_attempt_at_least(client: MCPWebSocketClient, max_retries: int) -> None:
    """With ``max_retries=0`` there is exactly one attempt."""
    assert await client.connect(max_retries) is True


async def test_connect_twice_keeps_the_connection(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """While connected, connect and ensure_connected do nothing."""
    assert await client.connect()
    assert await client.connect()
    assert await client.ensure_connected()
    assert daemon.connections == 1


async def test_call_tool_returns_a_triple(client: MCPWebSocketClient, peer: Peer) -> None:
    """The triple has success, outputs and error."""
    calling = asyncio.create_task(client.call_tool("echo", {"text": "hi"}))
    call = await peer.expect("call_tool")
    assert call["timeout_ms"] == 30_000
    await peer.answer(call, "hi")
    assert await calling == (True, [{"type": "text", "text": "hi"}], None)

    calling = asyncio.create_task(client.call_tool("x", {}))
    await peer.answer(await peer.expect("call_tool"), outputs=[], error=NOT_FOUND)
    assert await calling == (False, [], "TOOL_NOT_FOUND: no tool 'x'")


async def test_the_triple_has_the_rest_of_the_answer(client: MCPWebSocketClient, peer: Peer) -> None:
    """``structured`` and ``metadata`` are attributes of the triple, ``metadata`` also after an error."""
    calling = asyncio.create_task(client.call_tool("echo"))
    await peer.answer(await peer.expect("call_tool"), "hi", structured={"a": 1})
    outcome = await calling
    assert outcome.structured == {"a": 1}
    assert outcome.metadata is not None
    calling = asyncio.create_task(client.call_tool("x"))
    await peer.answer(await peer.expect("call_tool"), outputs=[], error=NOT_FOUND)
    outcome = await calling
    assert outcome.structured is None
    assert outcome.metadata is not None


async def test_call_raises_the_typed_error(client: MCPWebSocketClient, peer: Peer) -> None:
    """The same error that call_tool() returns as text."""
    calling = asyncio.create_task(client.call("x"))
    call = await peer.expect("call_tool")
    assert "timeout_ms" not in call
    await peer.answer(call, outputs=[], error=NOT_FOUND)
    with pytest.raises(ToolNotFoundError, match="no tool"):
        await calling


async def test_an_error_answer_has_metadata(client: MCPWebSocketClient, peer: Peer) -> None:
    """``answer`` returns the metadata of a failed call, which an exception does not have."""
    answering = asyncio.create_task(client.answer("chat", {"prompt": "?"}))
    error = {"code": "PROVIDER_ERROR", "message": "No.", "executed": "maybe", "retryable": False}
    await peer.answer(await peer.expect("call_tool"), outputs=[], error=error)
    answer = await answering
    assert answer.error is not None
    assert (answer.error.code, answer.metadata.latency_ms) == ("PROVIDER_ERROR", 1.0)


async def test_a_call_connects_first(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> None:
    """With auto_reconnect no connect() is required."""
    calling = asyncio.create_task(client.call_tool("echo"))
    peer = await daemon.accept()
    await peer.answer(await peer.expect("call_tool"), "here")
    assert (await calling)[0] is True


async def test_without_auto_reconnect_a_call_needs_a_connection(
    daemon: ScriptedDaemon, client: MCPWebSocketClient
) -> None:
    """The error says to connect."""
    success, outputs, error = await client.call_tool("echo", auto_reconnect=False)
    assert (success, outputs) == (False, [])
    assert error is not None
    assert "connect()" in error
    assert daemon.connections == 0


async def test_a_call_without_a_daemon_returns_the_error(client: MCPWebSocketClient, daemon: ScriptedDaemon) -> None:
    """The error is the third element of the triple."""
    daemon.ack = {"ok": False, "error": NOT_FOUND}
    success, _, error = await client.call_tool("echo")
    assert not success
    assert error is not None
    assert "refused the hello" in error


async def test_each_call_raises_the_failure_of_its_own_attempt(
    daemon: ScriptedDaemon, client: MCPWebSocketClient
) -> None:
    """Concurrent calls connect one after the other."""
    daemon.ack = {"ok": False, "error": NOT_FOUND}
    first, second = await asyncio.gather(client.call("echo"), client.call("echo"), return_exceptions=True)
    assert isinstance(first, ConnectionFailedError)
    assert isinstance(second, ConnectionFailedError)
    assert first is not second
    assert daemon.connections == 2


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
async def test_a_non_positive_timeout_is_refused(client: MCPWebSocketClient, timeout: float) -> None:
    """A timeout of 0 or less raises ValueError."""
    with pytest.raises(ValueError, match="timeout"):
        await client.call("echo", timeout=timeout)


async def test_chunks_need_the_stream_feature() -> None:
    """Without the feature, ``on_chunk`` is refused."""
    with pytest.raises(ValueError, match="stream"):
        await MCPWebSocketClient(features=("ack",)).call("echo", on_chunk=print)


async def test_both_signatures_of_metrics_calls(client: MCPWebSocketClient, peer: Peer) -> None:
    """With a baseline version and an iteration, or with a timeout."""
    measuring = asyncio.create_task(
        client.execute_tool_with_metrics(tool_name="echo", arguments={}, baseline_version="v1", iteration=4)
    )
    call = await peer.expect("call_tool")
    assert call["timeout_ms"] == 30_000
    await peer.answer(call)
    record = await measuring
    assert (record["tool_name"], record["iteration"], record["status"]) == ("echo", 4, "success")
    assert (record["baseline_version"], record["output_count"]) == ("v1", 1)
    assert record["latency_ms"] > 0

    measuring = asyncio.create_task(client.execute_tool_with_metrics("x", {}, 7.5))
    call = await peer.expect("call_tool")
    assert call["timeout_ms"] == 7500
    await peer.answer(call, outputs=[], error=NOT_FOUND)
    record = await measuring
    assert (record["iteration"], record["status"]) == (1, "error")
    assert record["error"] == "TOOL_NOT_FOUND: no tool 'x'"


async def test_cancel_needs_a_connection(client: MCPWebSocketClient) -> None:
    """Without a connection, ``cancel`` raises ConnectionLostError."""
    with pytest.raises(ConnectionLostError, match=r"connect\(\)"):
        await client.cancel("id")


async def test_the_repr_has_the_url_but_no_token(client: MCPWebSocketClient) -> None:
    """``repr`` shows the URL and the state."""
    assert repr(client) == f"<MCPWebSocketClient {client.url} not connected>"
    await client.connect()
    assert repr(client) == f"<MCPWebSocketClient {client.url} connected>"
