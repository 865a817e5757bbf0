"""Servers by HTTP: checked addresses, the source's own secret, and failures that are known by their codes."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from toold.protocol.error_codes import CallError
from toold.sources.mcp import upstream_http
from toold.tools import Answer

from .conftest import serving


def data(answer: Any) -> Any:
    assert isinstance(answer, Answer)
    return answer.data["result"]


@pytest.mark.parametrize("options", [(), ("--json",), ("--stateless", "--json")])
async def test_a_servers_tools_are_tools(opened: Any, behave: Any, options: tuple[str, ...]) -> None:
    """By streams and by plain JSON; a hundred calls at once."""
    async with serving(behave(), *options) as (port, _):
        shelf = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        answers = await asyncio.gather(*(shelf.call("echo", text=str(number)) for number in range(100)))
        assert [data(answer) for answer in answers] == [str(number) for number in range(100)]


async def test_a_server_that_goes_away_comes_back(opened: Any, behave: Any) -> None:
    """At the same address; who was waiting learns that it may have been executed, and others that nothing was."""
    command = behave()
    async with serving(command) as (port, process):
        shelf = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        call = asyncio.create_task(shelf.call("nap", seconds=600))
        await shelf.call("echo", text="it has begun")
        process.kill()
        with pytest.raises(CallError) as cut:
            await call
        assert (cut.value.code, cut.value.executed) == ("SERVICE_UNAVAILABLE", "maybe")
        await process.wait()
        await shelf.until(lambda: bool(shelf.problems))
        with pytest.raises(CallError) as away:
            await shelf.call("echo", text="x")
        assert (away.value.code, away.value.executed, away.value.retryable) == ("SERVICE_UNAVAILABLE", "no", True)
    async with serving(command, port=port):
        assert data(await shelf.again("echo", text="x")) == "x"


async def test_who_gives_up_has_the_server_told(opened: Any, behave: Any, tmp_path: Any) -> None:
    """Its work is cancelled there."""
    async with serving(behave(cancelled=str(tmp_path / "cancelled"))) as (port, _):
        shelf = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        with pytest.raises(CallError) as late:
            await shelf.call("nap", timeout_s=0.5, seconds=600)
        assert late.value.code == "TIMEOUT"
        await shelf.until((tmp_path / "cancelled").exists)
        assert data(await shelf.call("echo", text="x")) == "x"


async def test_a_change_while_it_runs_is_noticed(opened: Any, behave: Any) -> None:
    """By the stream that the server has for it."""
    async with serving(behave()) as (port, _):
        shelf = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        await shelf.call("grow")
        await shelf.until(lambda: "grown" in shelf.source.quarantined)


async def test_nothing_goes_to_a_private_address(opened: Any, api: Any) -> None:
    """Unless the operator allowed it."""
    shelf = await opened(url=f"{api.url}/mcp", ready=False)
    await shelf.until(lambda: bool(shelf.problems))
    assert "127.0.0.1 is loopback; the source's allow_private can allow it" in shelf.problems[0]
    assert api.asked == []


async def test_the_secret_goes_along_and_is_told_to_nobody(opened: Any, api: Any, monkeypatch: Any) -> None:
    """What the server refuses is the operator's matter."""
    monkeypatch.setenv("SERVER_TOKEN", "hunter2-hunter2")
    api.answers = [JSONResponse({"said": "hunter2-hunter2 is wrong"}, 401)]
    auth = {"type": "bearer", "env": "SERVER_TOKEN"}
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True, auth=auth, ready=False)
    await shelf.until(lambda: bool(shelf.problems))
    assert api.asked[0].headers["authorization"] == "Bearer hunter2-hunter2"
    assert "hunter2" not in shelf.problems[0]


async def test_an_answer_that_is_too_large_is_one_calls_matter(opened: Any, behave: Any) -> None:
    """In plain JSON and in a stream."""
    for options in [("--json",), ()]:
        async with serving(behave(), *options) as (port, _):
            url = f"http://127.0.0.1:{port}/mcp"
            shelf = await opened(f"s{os.urandom(2).hex()}", url=url, allow_private=True, max_answer_bytes=20_000)
            with pytest.raises(CallError) as large:
                await shelf.call("large", size=1_000_000)
            assert large.value.code == "RESULT_TOO_LARGE"
            assert data(await shelf.call("echo", text="x")) == "x"


Answering = Callable[[dict[str, Any], str], Response]


def serve_by_hand(api: Any, on_call: Answering, *, goodbye: bool = True) -> list[str]:
    """Have the API be an MCP server of an older revision, with a session; ``on_call`` answers calls, by the message and
    the session. Returns the methods that it was asked, in their order.
    """
    asked: list[str] = []

    async def answer(request: Request) -> Response:
        if request.method == "DELETE" and not goodbye:
            await asyncio.Event().wait()
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        asked.append(message["method"])
        headers = {}
        match message["method"]:
            case "initialize":
                headers["mcp-session-id"] = f"session-{asked.count('initialize')}"
                info = {"name": "by hand", "version": "1"}
                result: Any = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return on_call(message, request.headers.get("mcp-session-id", ""))
            case method if method.startswith("notifications/"):
                return Response(status_code=202)
            case _:
                error = {"code": -32601, "message": "Method not found"}
                return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "error": error})
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": result}, headers=headers)

    api.answers = [answer]
    return asked


def said(message: dict[str, Any], text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}


async def test_a_call_of_a_forgotten_session_is_sent_again(opened: Any, api: Any) -> None:
    """Once, in a new session: the server has not looked at it."""

    def on_call(message: dict[str, Any], session: str) -> Response:
        return Response(status_code=404) if session == "session-1" else JSONResponse(said(message, session))

    asked = serve_by_hand(api, on_call)
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await asyncio.gather(*(shelf.call("do") for _ in range(3))) == ["session-2"] * 3
    assert asked.count("initialize") == 2


async def test_a_server_that_forgets_each_session_is_asked_twice(opened: Any, api: Any) -> None:
    """Then the caller learns that nothing was executed."""
    asked = serve_by_hand(api, lambda _, __: Response(status_code=404))
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True)
    with pytest.raises(CallError) as forgotten:
        await shelf.call("do")
    assert (forgotten.value.code, forgotten.value.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert asked.count("tools/call") == 2


async def test_a_packed_answer_is_not_unpacked(opened: Any, api: Any) -> None:
    """Nobody asked for it, and a few bytes can stand for gigabytes."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        packed = gzip.compress(JSONResponse(said(message, "x" * 1_000_000)).body)
        return Response(packed, headers={"content-encoding": "gzip", "content-type": "application/json"})

    serve_by_hand(api, on_call)
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True)
    with pytest.raises(CallError, match="it is packed \\(gzip\\)") as packed:
        await shelf.call("do")
    assert (packed.value.code, packed.value.executed) == ("PROVIDER_ERROR", "maybe")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_half_of_a_character_spoils_no_answer(opened: Any, api: Any, kind: str) -> None:
    """U+FFFD stands for it, wherever the pieces of the answer end."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        body = json.dumps(said(message, "a \ud83d b \U0001f600")).encode()
        whole = body if kind == "application/json" else b"data: " + body + b"\n\n"

        async def pieces() -> AsyncIterator[bytes]:
            for begin in range(0, len(whole), 3):
                yield whole[begin : begin + 3]

        return StreamingResponse(pieces(), media_type=kind)

    serve_by_hand(api, on_call)
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await shelf.call("do") == "a \ufffd b \U0001f600"


async def test_an_event_without_an_end_is_too_large(opened: Any, api: Any) -> None:
    """However small its parts; a stream of many events is not."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        async def events() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b": a comment\n\n" * 100
            if message["params"]["arguments"]:
                for _ in range(20):
                    yield b"data: " + b"x" * 2000 + b"\n"
            yield b"data: " + JSONResponse(said(message, "done")).body + b"\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    serve_by_hand(api, on_call)
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True, max_answer_bytes=20_000)
    assert await shelf.call("do") == "done"
    with pytest.raises(CallError) as large:
        await shelf.call("do", much=True)
    assert large.value.code == "RESULT_TOO_LARGE"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            Response(status_code=401),
            "s answered HTTP 401. It rejects the daemon's secret; the operator",
        ),
        (Response(status_code=404), "it answered HTTP 404; check url in [sources.s]"),
        (Response(status_code=503), "s answered HTTP 503"),
        (Response("<html>", media_type="text/html"), "Unexpected content type: text/html"),
        (Response(status_code=307, headers={"location": "http://169.254.169.254/"}), "169.254.169.254/ not followed"),
    ],
    ids=["401", "404", "503", "html", "redirect"],
)
async def test_why_it_cannot_be_connected_to_is_told(opened: Any, api: Any, answer: Response, told: str) -> None:
    """By what HTTP says of it, to the operator."""
    api.answers = [answer]
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True, ready=False)
    await shelf.until(lambda: bool(shelf.problems))
    assert told in shelf.problems[0]


async def test_an_end_waits_for_no_answer(opened: Any, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not take leave is left all the same."""
    monkeypatch.setattr(upstream_http, "_GOODBYE_S", 0.05)
    serve_by_hand(api, lambda message, session: JSONResponse(said(message, session)), goodbye=False)
    shelf = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await shelf.call("do") == "session-1"
    running = next(task for task in asyncio.all_tasks() if "McpSource.run" in repr(task))
    running.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([running])
