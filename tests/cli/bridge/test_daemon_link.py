"""The bridge's connection to the daemon."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest
from toold.cli.bridge.daemon_link import DaemonLink
from toold.cli.bridge.daemon_starter import DaemonStarter
from toold.client import client_link
from toold.protocol.error_codes import ErrorCode, ServiceUnavailableError
from toold.protocol.tool_call import ImageContent, TextContent, ToolCall

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import StubDaemon


def upstream(directory: Path | None = None) -> DaemonLink:
    return DaemonLink(DaemonStarter(os.environ), None, directory, lambda: None, lambda *_: None)


async def test_an_unreachable_remote_daemon(monkeypatch: pytest.MonkeyPatch, bare_environment: Path) -> None:
    """The bridge does not start a remote daemon: the error names the address, and nothing was executed."""
    monkeypatch.setenv("TOOLD_HOST", "daemon.invalid")
    monkeypatch.setattr(client_link, "MAX_DELAY_S", 0.01)  # between the attempts
    way = upstream()
    with pytest.raises(ServiceUnavailableError, match=r"daemon\.invalid"):
        await way.instructions()
    result = await way.call(ToolCall("c", "echo", {}, 100), None)
    assert result.error is not None
    assert (result.error.code, result.error.executed) == (ErrorCode.SERVICE_UNAVAILABLE, "no")
    assert not bare_environment.exists()
    await way.close()


async def test_a_call_whose_daemon_does_not_return(daemon: StubDaemon) -> None:
    """The answer says that the outcome of the call is unknown."""
    daemon.on_call = lambda *_: None
    way = upstream()
    calling = asyncio.create_task(way.call(ToolCall("c", "echo", {}), None))
    await asyncio.to_thread(daemon.wait_for, "call_tool")
    await way.close()
    result = await calling
    assert result.error is not None
    assert (result.error.code, result.error.executed) == (ErrorCode.OUTCOME_UNKNOWN, "maybe")


async def test_the_previous_client_closes_when_its_calls_are_done(daemon: StubDaemon, tmp_path: Path) -> None:
    """Running calls continue on the previous client; later ones use the new directory."""
    answer = asyncio.Event()
    loop = asyncio.get_running_loop()
    echo = daemon.on_call

    def wait(call: dict[str, object], send: object) -> None:
        asyncio.run_coroutine_threadsafe(answer.wait(), loop).result(20)
        echo(call, send)  # type: ignore[arg-type] # the stub's own

    daemon.on_call = wait
    way = upstream()
    slow = asyncio.create_task(way.call(ToolCall("slow", "echo", {"text": "slow"}), None))
    await asyncio.to_thread(daemon.wait_for, "call_tool")
    daemon.on_call = echo
    way.directory = tmp_path
    assert (await way.call(ToolCall("c", "echo", {"text": "new"}), None)).outputs
    answer.set()
    assert (await slow).structured == {"text": "slow"}
    hellos = [frame["client"] for frame in daemon.frames if frame["op"] == "hello"]
    assert [hello.get("workspace") for hello in hellos] == [None, str(tmp_path)]
    await way.close()


async def test_a_daemon_that_refuses_the_editor(daemon: StubDaemon) -> None:
    """If the toolset does not exist, the error is not retryable: the same call would fail again."""
    refusal = {"code": "PERMISSION_DENIED", "message": "There is no 'nope'.", "executed": "no", "retryable": False}
    daemon.ack = {"ok": False, "error": refusal}
    way = upstream()
    result = await way.call(ToolCall("c", "echo", {}), None)
    assert result.error is not None
    assert "There is no 'nope'." in result.error.message
    assert (result.error.executed, result.error.retryable) == ("no", False)
    assert [frame["op"] for frame in daemon.frames] == ["hello"]
    await way.close()


async def test_an_answer_is_forwarded_whole(daemon: StubDaemon) -> None:
    """The editor also gets the cost of a failed call, and data that is null."""
    metadata = {"latency_ms": 5.0, "timings": {"queue_ms": 0.0, "tool_ms": 5.0, "provider_ms": 4.0}, "model": "m"}
    error = {"code": "PROVIDER_ERROR", "message": "No.", "executed": "yes", "retryable": False, "details": {"a": 1}}
    answers: list[dict[str, object]] = [
        {"outputs": [], "error": error},
        {"outputs": [{"type": "text", "text": "null"}], "error": None, "structured": None},
        {
            "outputs": [
                {"type": "text", "text": "a picture, and what nobody knows yet"},
                {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
                {"type": "hologram"},
            ],
            "error": None,
        },
    ]
    daemon.on_call = lambda call, send: send(
        "call_tool_res", request_id=call["request_id"], metadata=metadata, **answers.pop(0)
    )
    way = upstream()
    failed = await way.call(ToolCall("a", "echo", {}), None)
    assert failed.error is not None
    assert (failed.error.code, failed.error.details, failed.metadata.model) == ("PROVIDER_ERROR", {"a": 1}, "m")
    empty = await way.call(ToolCall("b", "echo", {}), None)
    assert (empty.ok, empty.structured) == (True, None)
    later = await way.call(ToolCall("c", "echo", {}), None)
    assert [type(block) for block in later.outputs] == [TextContent, ImageContent, TextContent]
    assert "restart it" in later.text
    await way.close()
