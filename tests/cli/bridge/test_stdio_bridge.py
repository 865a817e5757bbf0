"""The bridge translates between an editor's MCP messages and the daemon's frames."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli.bridge.stdio_bridge import first_directory

if TYPE_CHECKING:
    from tests.cli.bridge.conftest import Editor
    from tests.cli.conftest import Frame, Send, StubDaemon

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "a-new-editor", "version": "1"},
}


def fail(code: str, executed: str = "no") -> Any:
    """A handler that answers each call with this error."""

    def on_call(call: Frame, send: Send) -> None:
        error = {"code": code, "message": "because", "executed": executed, "retryable": False}
        metadata = {"latency_ms": 1.0, "timings": {"queue_ms": 0.0, "tool_ms": 1.0, "provider_ms": 0.0}}
        send("call_tool_res", request_id=call["request_id"], outputs=[], error=error, metadata=metadata)

    return on_call


@pytest.mark.parametrize(
    ("requested", "agreed"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("1999", "2025-11-25")],
)
async def test_a_handshake(editor: Editor, daemon: StubDaemon, requested: str, agreed: str) -> None:
    """The editor gets its revision and the daemon's instructions; the daemon gets the editor's name."""
    daemon.ack |= {"instructions": "Call echo."}
    reported = await editor.initialize(requested)
    assert (reported["protocolVersion"], reported["instructions"]) == (agreed, "Call echo.")
    assert set(reported["capabilities"]) == {"tools", "resources", "prompts", "completions", "logging"}
    hello = daemon.wait_for("hello")
    assert (hello["client"]["name"], hello["toolset"]) == ("an-editor", "standard")
    assert {"ack", "resume", "tools_changed"} <= set(hello["features"])


async def test_tools_and_calls(editor: Editor, daemon: StubDaemon) -> None:
    """Tools are listed in MCP's format, called with their arguments, and answered with text and structured content."""
    await editor.initialize()
    listed = (await editor.ask("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["echo", "status"]
    assert all("execution" not in tool for tool in listed)
    result = (await editor.ask("tools/call", name="echo", arguments={"text": "hi"}))["result"]
    assert result["content"] == [{"type": "text", "text": "hi"}]
    assert result["structuredContent"] == {"text": "hi"}
    assert result["_meta"]["toold/metadata"]["latency_ms"] == 12.0
    assert daemon.wait_for("call_tool")["request_id"] != "asked"


async def test_a_stateless_editor(editor: Editor, daemon: StubDaemon) -> None:
    """Each request carries its version, capabilities and client info, and each result states its type."""
    found = (await editor.ask("server/discover", _meta=META))["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["capabilities"]["tools"] == {"listChanged": True}
    result = (await editor.ask("tools/call", name="echo", arguments={"text": "hi"}, _meta=META))["result"]
    assert (result["resultType"], result["content"][0]["text"]) == ("complete", "hi")
    assert daemon.wait_for("hello")["client"]["name"] == "a-new-editor"
    other = META | {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    assert (await editor.ask("tools/list", _meta=other))["error"]["code"] == -32022


async def test_errors_are_answers(editor: Editor, daemon: StubDaemon) -> None:
    """A tool's failure is a result for the model; an unknown tool is an error of the request."""
    await editor.initialize()
    daemon.on_call = fail("TOOL_EXECUTION_ERROR", "maybe")
    result = (await editor.ask("tools/call", name="status"))["result"]
    assert result["isError"]
    assert result["content"][0]["text"].startswith("TOOL_EXECUTION_ERROR: because")
    assert result["structuredContent"]["code"] == "TOOL_EXECUTION_ERROR"
    daemon.on_call = fail("TOOL_NOT_FOUND")
    assert (await editor.ask("tools/call", name="nope"))["error"]["code"] == -32602
    assert (await editor.ask("tools/call", name=7))["error"]["code"] == -32602


async def test_progress_comes_before_the_answer(editor: Editor, daemon: StubDaemon) -> None:
    """Progress carries the token of its request; a request without a token gets no progress."""

    def reports(call: Frame, send: Send) -> None:
        send("progress", request_id=call["request_id"], seq=1, message="half", done=1, total=2)
        metadata = {"latency_ms": 1.0, "timings": {"queue_ms": 0.0, "tool_ms": 1.0, "provider_ms": 0.0}}
        send("call_tool_res", request_id=call["request_id"], outputs=[], error=None, metadata=metadata)

    daemon.on_call = reports
    await editor.initialize()
    editor.begin(1, "tools/call", name="echo", _meta={"progressToken": "t"})
    reported = await editor.receive()
    assert reported["method"] == "notifications/progress"
    assert reported["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
    assert (await editor.receive())["id"] == 1
    assert "result" in await editor.ask("tools/call", name="echo")


async def test_a_cancelled_request_is_not_answered(editor: Editor, daemon: StubDaemon) -> None:
    """The daemon ends the call; other requests are answered."""
    daemon.on_call = lambda *_: None
    await editor.initialize()
    editor.begin(1, "tools/call", name="echo")
    called = await asyncio.to_thread(daemon.wait_for, "call_tool")
    editor.send("notifications/cancelled", requestId=1)
    assert (await asyncio.to_thread(daemon.wait_for, "cancel"))["request_id"] == called["request_id"]
    assert (await editor.ask("ping"))["result"] == {}


async def test_concurrent_requests(editor: Editor) -> None:
    """Each concurrent request gets its own answer, in whatever order the answers arrive."""
    await editor.initialize()
    for number in range(30):
        editor.begin(number, "tools/call", name="echo", arguments={"text": str(number)})
    answers = [await editor.receive() for _ in range(30)]
    texts = {answer["id"]: answer["result"]["content"][0]["text"] for answer in answers}
    assert texts == {number: str(number) for number in range(30)}


async def test_batches(editor: Editor) -> None:
    """The revision that has batches gets an array of answers; others get an error that says what to do instead."""
    batch = b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"nope"},7]\n'
    await editor.initialize("2025-03-26")
    editor.send_raw(batch)
    answers = {answer["id"]: answer for answer in await editor.receive()}
    assert (answers[1]["result"], answers[2]["error"]["code"], answers[None]["error"]["code"]) == ({}, -32601, -32600)
    await editor.initialize("2025-06-18")
    editor.send_raw(batch)
    assert "one message per line" in (await editor.receive())["error"]["message"]


@pytest.mark.parametrize(
    ("line", "code"),
    [(b"{nonsense\n", -32700), (b"7\n", -32600), (b'{"jsonrpc":"2.0","id":1}\n', -32600), (b"x" * 200_000, -32600)],
)
async def test_malformed_messages(editor: Editor, line: bytes, code: int) -> None:
    """A malformed message is answered with an error, and the channel stays usable."""
    for start in range(0, len(line), 10_000):
        editor.send_raw(line[start : start + 10_000])
    editor.send_raw(b"\n")
    assert (await editor.receive())["error"]["code"] == code
    assert (await editor.ask("ping"))["result"] == {}


async def test_a_refused_hello_is_an_error(editor: Editor, daemon: StubDaemon) -> None:
    """The editor gets the reason and may retry."""
    error = {"code": "PERMISSION_DENIED", "message": "there is no 'x'", "executed": "no", "retryable": False}
    good = daemon.ack
    daemon.ack = {"ok": False, "error": error}
    answer = await editor.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
    assert "there is no 'x'" in answer["error"]["message"]
    daemon.ack = good
    assert (await editor.initialize())["protocolVersion"] == "2025-11-25"


async def test_the_editors_directory(editor: Editor, daemon: StubDaemon, tmp_path: Path) -> None:
    """Relative paths are resolved in the editor's directory, or in the root that it reports."""
    await editor.initialize(roots={"listChanged": True})
    request = await editor.receive()
    assert request["method"] == "roots/list"
    editor.begin(1, "tools/call", name="echo")  # the bridge holds this call until the roots are known
    uri = (tmp_path / "my project").as_uri()
    editor.send_raw(
        b'{"jsonrpc":"2.0","id":"%s","result":{"roots":[{"uri":"%s"}]}}\n' % (request["id"].encode(), uri.encode())
    )
    assert (await editor.receive())["id"] == 1
    directories = [frame["client"]["workspace"] for frame in daemon.frames if frame["op"] == "hello"]
    assert directories == [str(tmp_path), str(tmp_path / "my project")]


async def test_the_editor_is_notified_of_changed_tools(editor: Editor, daemon: StubDaemon) -> None:
    """An editor that initialized and one that subscribed are both notified, each in the format of its revision."""

    def change(call: Frame, send: Send) -> None:
        send("tools_changed", rev=call["request_id"])
        send("call_tool_res", request_id=call["request_id"], outputs=[], error=None, metadata=METADATA)

    daemon.on_call = change
    daemon.ack |= {"tools_rev": "1"}
    editor.begin("l", "subscriptions/listen", notifications={"toolsListChanged": True}, _meta=META)
    acknowledgement = await editor.receive()
    assert acknowledgement["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledgement["params"]["notifications"] == {"toolsListChanged": True}
    editor.begin(1, "tools/call", name="echo", _meta=META)
    reported = [await editor.receive() for _ in range(2)]
    changed = next(item for item in reported if "method" in item)
    assert changed["method"] == "notifications/tools/list_changed"
    assert changed["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "l"}
    editor.send("notifications/cancelled", requestId="l")
    await editor.initialize()
    editor.begin(2, "tools/call", name="echo")
    reported = [await editor.receive() for _ in range(2)]
    assert {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {}} in reported


METADATA = {"latency_ms": 1.0, "timings": {"queue_ms": 0.0, "tool_ms": 1.0, "provider_ms": 0.0}}


@pytest.mark.parametrize(
    ("roots", "directory"),
    [
        ([{"uri": "file:///home/me/my%20project"}, {"uri": "file:///other"}], "/home/me/my project"),
        ([{"uri": "file://localhost/x"}], "/x"),
        ([{"uri": "https://example/x"}, {"uri": "file:///second"}], "/second"),
        ([{"uri": "file://another-machine/x"}], None),
        ([{"uri": "file:///%00"}, {"uri": 7}, {}, 7, {"uri": "file://[/x"}], None),
        ([], None),
        ("nonsense", None),
    ],
)
def test_the_first_local_root_is_the_directory(roots: Any, directory: str | None) -> None:
    """Other roots and malformed ones are skipped."""
    assert first_directory({"roots": roots}) == (None if directory is None else Path(directory))


def test_an_error_response_has_no_directory() -> None:
    """If the editor answers ``roots/list`` with an error, there is no directory."""
    assert first_directory(None) is None
