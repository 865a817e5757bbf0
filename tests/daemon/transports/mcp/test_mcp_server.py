"""``/mcp`` over real sockets: rejected requests, batches, and session labels."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from toold.daemon.app import Daemon
from toold.daemon.transports import http_io
from toold.tools import Tool

from .conftest import ACCEPT, STATELESS, Connect, Serve

PLAIN = {"accept": ACCEPT, "content-type": "application/json"}


async def say(arguments: Any, _: Any) -> Any:
    """Returns its argument under ``text``."""
    return arguments.model_dump().get("text", "nothing")


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool]) -> Daemon:
    return await serve(make_tool("say", say), TOOLD_DEFAULT_TOOLSET="full", TOOLD_MAX_FRAME_BYTES="65536")


async def posted(connect: Connect, daemon: Daemon, body: bytes | str, **headers: str) -> httpx.Response:
    """Sends a raw body; returns the response."""
    return await connect(daemon).http.post("/mcp", content=body, headers=PLAIN | headers)


def call(request_id: object, text: str) -> dict[str, Any]:
    params = {"name": "say", "arguments": {"text": text}}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
async def test_a_call(connect: Connect, daemon: Daemon, revision: str) -> None:
    """Each revision's request is answered with plain JSON if nothing precedes the answer."""
    answer = await connect(daemon, revision).ask("tools/call", {"name": "say", "arguments": {"text": "hi"}})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["result"]["content"] == [{"type": "text", "text": "hi"}]


async def test_get_and_delete(connect: Connect, daemon: Daemon) -> None:
    """405 with the allowed methods, unless the client has a label."""
    http = connect(daemon).http
    for method in ("GET", "DELETE"):
        answer = await http.request(method, "/mcp", headers={"accept": "text/event-stream"})
        assert (answer.status_code, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26"])
async def test_an_ended_label_gets_404(connect: Connect, daemon: Daemon, revision: str) -> None:
    """After DELETE, as the specification requires; other clients go on."""
    client = connect(daemon, revision)
    labels = []
    for _ in range(2):
        opening = await client.ask("initialize", {"protocolVersion": revision})
        labels.append({"mcp-session-id": opening.headers["mcp-session-id"]})
    ended, other = labels
    version = {"mcp-protocol-version": revision}
    assert (await client.http.delete("/mcp", headers=ended | version)).status_code == 200
    answer = await client.ask("tools/list", headers=ended)
    assert answer.status_code == 404
    assert "was ended by DELETE; send initialize again" in answer.text
    assert (await client.http.delete("/mcp", headers=ended | version)).status_code == 404
    assert (await client.ask("tools/list", headers=other)).status_code == 200


async def test_foreign_pages(connect: Connect, daemon: Daemon) -> None:
    """Pages of other sites are rejected, as on the WebSocket port, and so are rebound names."""
    http = connect(daemon).http
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        answer = await http.post("/mcp", json=call(1, "x"), headers=PLAIN | headers)
        assert answer.status_code == 403
    own = {"origin": f"http://127.0.0.1:{daemon.http.port}"}
    assert (await http.post("/mcp", json=call(1, "x"), headers=PLAIN | own)).status_code == 200


async def test_the_token(serve: Serve, connect: Connect, make_tool: Callable[..., Tool]) -> None:
    """With auth on, only the bearer token is accepted."""
    daemon = await serve(make_tool("say", say), TOOLD_AUTH="true", TOOLD_TOKEN="a-token-of-the-operator")
    http = connect(daemon).http
    refused = await http.post("/mcp", json=call(1, "x"), headers=PLAIN)
    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, 'Bearer realm="toold"')
    bearer = {"authorization": "Bearer a-token-of-the-operator"}
    assert (await http.post("/mcp", json=call(1, "x"), headers=PLAIN | bearer)).status_code == 200


@pytest.mark.parametrize(
    ("body", "code"), [("nonsense", -32700), ("{}", -32600), ("[]", -32600), ("7", -32600), ("", -32700)]
)
async def test_invalid_messages(connect: Connect, daemon: Daemon, body: str, code: int) -> None:
    """400 with the reason."""
    answer = await posted(connect, daemon, body)
    assert (answer.status_code, answer.json()["error"]["code"], answer.json()["id"]) == (400, code, None)


async def test_a_body_above_the_limit(connect: Connect, daemon: Daemon) -> None:
    """The error states the limit."""
    answer = await posted(connect, daemon, b" " * 70_000)
    assert answer.status_code == 413
    assert "65536" in answer.json()["error"]["message"]


async def test_a_body_that_stops(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client gets an error after a timeout, and its connection is closed."""
    monkeypatch.setattr(http_io, "BODY_TIMEOUT_S", 0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", daemon.http.port)
    head = "".join(f"{name}: {value}\r\n" for name, value in {**PLAIN, "host": "127.0.0.1"}.items())
    writer.write(f"POST /mcp HTTP/1.1\r\n{head}content-length: 10\r\n\r\n{{".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in await reader.read()
    writer.close()


async def test_notifications(connect: Connect, daemon: Daemon) -> None:
    """Accepted without an answer; replies to questions that were not asked are refused."""
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
    for headers in ({}, {"mcp-protocol-version": "2025-11-25"}, {"mcp-protocol-version": STATELESS}):
        answer = await posted(connect, daemon, note, **headers)
        assert (answer.status_code, answer.content) == (202, b"")
    reply = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert (await posted(connect, daemon, reply)).status_code == 400
    assert (await posted(connect, daemon, reply, **{"mcp-protocol-version": STATELESS})).status_code == 400
    assert (await posted(connect, daemon, note, **{"mcp-protocol-version": "1999-01-01"})).status_code == 400


async def test_unsupported_versions(connect: Connect, daemon: Daemon) -> None:
    """400, and the error lists the supported ones."""
    answer = await posted(connect, daemon, json.dumps(call(5, "x")), **{"mcp-protocol-version": "1999-01-01"})
    assert (answer.status_code, answer.json()["id"]) == (400, 5)
    assert answer.json()["error"]["data"]["requested"] == "1999-01-01"


async def test_headers_that_differ_from_the_body(connect: Connect, daemon: Daemon) -> None:
    """Proxies that route by headers must not be misled."""
    client = connect(daemon)
    status, error = await client.error("tools/call", {"name": "say"}, headers={"mcp-name": "other"})
    assert (status, error["code"]) == (400, -32020)


async def test_unknown_methods(connect: Connect, daemon: Daemon) -> None:
    """Not found: with HTTP's status in the stateless revision, with a plain error before."""
    status, error = await connect(daemon).error("prompts/erase")
    assert (status, error["code"]) == (404, -32601)
    status, error = await connect(daemon, "2025-11-25").error("prompts/erase")
    assert (status, error["code"]) == (200, -32601)


async def test_a_batch(connect: Connect, daemon: Daemon) -> None:
    """Its requests are answered together, under their ids; invalid messages have their own errors."""
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    batch = [call(1, "one"), note, call("two", "two"), {"jsonrpc": "2.0", "id": 3}, {**call(4, ""), "method": "x"}]
    answer = await posted(connect, daemon, json.dumps(batch), **{"mcp-protocol-version": "2025-03-26"})
    answers = {item["id"]: item for item in answer.json()}
    assert [answers[name]["result"]["content"][0]["text"] for name in (1, "two")] == ["one", "two"]
    assert [answers[name]["error"]["code"] for name in (3, 4)] == [-32600, -32601]
    assert len(answers) == 4
    assert (await posted(connect, daemon, json.dumps([note]))).status_code == 202


@pytest.mark.parametrize(("revision", "length"), [("2025-06-18", 1), ("2026-07-28", 1), ("2025-03-26", 33)])
async def test_invalid_batches(connect: Connect, daemon: Daemon, revision: str, length: int) -> None:
    """Only one revision has batches, of limited length."""
    batch = json.dumps([call(number, "x") for number in range(length)])
    answer = await posted(connect, daemon, batch, **{"mcp-protocol-version": revision})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, -32600)


async def test_toolsets(serve: Serve, connect: Connect, make_tool: Callable[..., Tool], tmp_path: Path) -> None:
    """A toolset in the path limits the tools; an unknown one is not found."""
    (tmp_path / "toold.toml").write_text('[toolsets.some]\ninclude = ["echo"]\n')
    daemon = await serve(make_tool("say", say), make_tool("echo", say))
    client = connect(daemon, path="/mcp/some")
    assert [tool["name"] for tool in (await client.result("tools/list"))["tools"]] == ["echo"]
    assert "'some'" in (await client.result("server/discover"))["instructions"]
    status, error = await client.error("tools/call", {"name": "say"})
    assert (status, error["code"]) == (400, -32602)
    assert "toolset" in error["message"]
    everything = await connect(daemon, path="/mcp/full").result("tools/list")
    assert [tool["name"] for tool in everything["tools"]] == ["echo", "say"]
    status, error = await connect(daemon, path="/mcp/none").error("tools/list")
    assert (status, "some" in error["message"]) == (404, True)


async def test_a_session_label(connect: Connect, daemon: Daemon) -> None:
    """``initialize`` returns it, with the client's name; with an invalid one, the client has to initialize again."""
    client = connect(daemon, "2025-11-25")
    info = {"protocolVersion": "2025-11-25", "clientInfo": {"name": "an editor", "version": "1"}, "capabilities": {}}
    answer = await client.ask("initialize", info)
    label = answer.headers["mcp-session-id"]
    assert label.startswith("an-editor-")
    assert (await client.ask("ping", headers={"mcp-session-id": label})).status_code == 200
    assert (await client.ask("ping", headers={"mcp-session-id": "another"})).status_code == 404
    assert (await connect(daemon).ask("tools/list", headers={"mcp-session-id": "another"})).status_code == 200


async def test_concurrent_requests_are_limited(serve: Serve, connect: Connect, make_tool: Callable[..., Tool]) -> None:
    """Further requests get 503."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def wait(*_: Any) -> str:
        entered.set()
        await leave.wait()
        return "done"

    daemon = await serve(make_tool("wait", wait), TOOLD_DEFAULT_TOOLSET="full", TOOLD_MAX_CONNECTIONS="1")
    client = connect(daemon)
    first = asyncio.create_task(client.call("wait"))
    await entered.wait()
    second = await client.ask("tools/list")
    assert (second.status_code, second.headers["retry-after"]) == (503, "1")
    leave.set()
    assert (await first)["content"][0]["text"] == "done"
    assert (await client.ask("tools/list")).status_code == 200
