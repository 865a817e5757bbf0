"""Upstream servers over HTTP: checked addresses, secrets, and failures by status code."""

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from toold.protocol.error_codes import CallError
from toold.sources.address_policy import AddressPolicy
from toold.sources.checked_network import CheckedNetwork
from toold.sources.mcp import upstream_http
from toold.sources.mcp.upstream_exchange import UpstreamExchange
from toold.sources.mcp.upstream_http import SourceTransport, recorded_in
from toold.tools import ToolOutput

from .conftest import serving


def data(answer: Any) -> Any:
    assert isinstance(answer, ToolOutput)
    return answer.data["result"]


@pytest.mark.parametrize("options", [(), ("--json",), ("--stateless", "--json")])
async def test_a_servers_tools_are_published(opened: Any, configure_server: Any, options: tuple[str, ...]) -> None:
    """Over event streams and plain JSON; a hundred concurrent calls."""
    async with serving(configure_server(), *options) as (port, _):
        listener = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        answers = await asyncio.gather(*(listener.call("echo", text=str(number)) for number in range(100)))
        assert [data(answer) for answer in answers] == [str(number) for number in range(100)]


async def test_a_restarted_server_is_reconnected(opened: Any, configure_server: Any) -> None:
    """Running calls fail with executed ``maybe``, later ones with ``no`` until it is back."""
    command = configure_server()
    async with serving(command) as (port, process):
        listener = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        call = asyncio.create_task(listener.call("nap", seconds=600))
        await listener.call("echo", text="started")
        process.kill()
        with pytest.raises(CallError) as cut:
            await call
        assert (cut.value.code, cut.value.executed) == ("SERVICE_UNAVAILABLE", "maybe")
        await process.wait()
        await listener.until(lambda: bool(listener.problems))
        with pytest.raises(CallError) as away:
            await listener.call("echo", text="x")
        assert (away.value.code, away.value.executed, away.value.retryable) == ("SERVICE_UNAVAILABLE", "no", True)
    async with serving(command, port=port):
        assert data(await listener.call_until_available("echo", text="x")) == "x"


async def test_a_timeout_cancels_the_call_at_the_server(opened: Any, configure_server: Any, tmp_path: Any) -> None:
    """The session continues."""
    async with serving(configure_server(cancelled=str(tmp_path / "cancelled"))) as (port, _):
        listener = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        with pytest.raises(CallError) as late:
            await listener.call("nap", timeout_s=0.5, seconds=600)
        assert late.value.code == "TIMEOUT"
        await listener.until((tmp_path / "cancelled").exists)
        assert data(await listener.call("echo", text="x")) == "x"


async def test_an_announced_change_is_noticed(opened: Any, configure_server: Any) -> None:
    """Through the server's event stream."""
    async with serving(configure_server()) as (port, _):
        listener = await opened(url=f"http://127.0.0.1:{port}/mcp", allow_private=True)
        await listener.call("grow")
        await listener.until(lambda: "grown" in listener.source.quarantined)


async def test_private_addresses_are_forbidden(opened: Any, api: Any) -> None:
    """Unless the operator allows them."""
    listener = await opened(url=f"{api.url}/mcp", ready=False)
    await listener.until(lambda: bool(listener.problems))
    assert "127.0.0.1 is loopback; the source's allow_private can allow it" in listener.problems[0]
    assert api.asked == []


async def test_the_secret_is_sent_and_never_shown(opened: Any, api: Any, monkeypatch: Any) -> None:
    """Even if the server repeats it."""
    monkeypatch.setenv("SERVER_TOKEN", "hunter2-hunter2")
    api.answers = [JSONResponse({"error": "hunter2-hunter2 is wrong"}, 401)]
    auth = {"type": "bearer", "env": "SERVER_TOKEN"}
    listener = await opened(url=f"{api.url}/mcp", allow_private=True, auth=auth, ready=False)
    await listener.until(lambda: bool(listener.problems))
    assert api.asked[0].headers["authorization"] == "Bearer hunter2-hunter2"
    assert "hunter2" not in listener.problems[0]


async def test_a_too_large_answer_fails_one_call(opened: Any, configure_server: Any) -> None:
    """In plain JSON and in an event stream."""
    for options in [("--json",), ()]:
        async with serving(configure_server(), *options) as (port, _):
            url = f"http://127.0.0.1:{port}/mcp"
            listener = await opened(f"s{os.urandom(2).hex()}", url=url, allow_private=True, max_answer_bytes=20_000)
            with pytest.raises(CallError) as large:
                await listener.call("large", size=1_000_000)
            assert large.value.code == "RESULT_TOO_LARGE"
            assert data(await listener.call("echo", text="x")) == "x"


@pytest.mark.parametrize("streamed", [False, True], ids=["json", "event stream"])
async def test_an_answer_with_too_many_values_is_not_parsed(opened: Any, api: Any, streamed: bool) -> None:
    """Its call fails with the reason; a text with as many commas, and later calls, are answered."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        answer = text_result(message, "," * 150_000)
        if message["params"]["arguments"]:
            answer["result"]["structuredContent"] = {"rows": [0] * 150_000}
        if not streamed:
            return JSONResponse(answer)
        events = b': a "comment\n\ndata: ' + JSONResponse(answer).body + b"\n\n"
        return Response(events, media_type="text/event-stream")

    serve_by_hand(api, on_call)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    with pytest.raises(CallError, match="cannot be read: it has more than 100,000 values") as refused:
        await listener.call("do", many=True)
    assert (refused.value.code, refused.value.executed) == ("PROVIDER_ERROR", "maybe")
    assert await listener.call("do") == "," * 150_000


Answering = Callable[[dict[str, Any], str], Response]


def serve_by_hand(api: Any, on_call: Answering, *, answers_delete: bool = True) -> list[str]:
    """Makes the API a stateful MCP server of an older revision; ``on_call`` answers calls.

    Returns the received methods, in order.
    """
    methods: list[str] = []

    async def answer(request: Request) -> Response:
        if request.method == "DELETE" and not answers_delete:
            await asyncio.Event().wait()
        if request.method != "POST":
            return Response(status_code=405)
        message = await request.json()
        methods.append(message["method"])
        headers = {}
        match message["method"]:
            case "initialize":
                headers["mcp-session-id"] = f"session-{methods.count('initialize')}"
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
    return methods


def text_result(message: dict[str, Any], text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": message["id"], "result": {"content": [{"type": "text", "text": text}]}}


async def test_a_call_to_a_forgotten_session_is_resent(opened: Any, api: Any) -> None:
    """Once, in a new session: the server has not executed it."""

    def on_call(message: dict[str, Any], session: str) -> Response:
        return Response(status_code=404) if session == "session-1" else JSONResponse(text_result(message, session))

    methods = serve_by_hand(api, on_call)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await asyncio.gather(*(listener.call("do") for _ in range(3))) == ["session-2"] * 3
    assert methods.count("initialize") == 2


async def test_a_call_is_resent_only_once(opened: Any, api: Any) -> None:
    """Then it fails with executed ``no``."""
    methods = serve_by_hand(api, lambda _, __: Response(status_code=404))
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    with pytest.raises(CallError) as forgotten:
        await listener.call("do")
    assert (forgotten.value.code, forgotten.value.executed) == ("SERVICE_UNAVAILABLE", "no")
    assert methods.count("tools/call") == 2


async def test_a_compressed_answer_is_refused(opened: Any, api: Any) -> None:
    """The daemon does not accept compression, because a few bytes can expand to gigabytes."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        packed = gzip.compress(JSONResponse(text_result(message, "x" * 1_000_000)).body)
        return Response(packed, headers={"content-encoding": "gzip", "content-type": "application/json"})

    serve_by_hand(api, on_call)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    with pytest.raises(CallError, match="it is compressed \\(gzip\\)") as packed:
        await listener.call("do")
    assert (packed.value.code, packed.value.executed) == ("PROVIDER_ERROR", "maybe")


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_lone_surrogate_is_replaced(opened: Any, api: Any, kind: str) -> None:
    """By U+FFFD, at any chunk boundary."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        body = json.dumps(text_result(message, "a \ud83d b \U0001f600")).encode()
        whole = body if kind == "application/json" else b"data: " + body + b"\n\n"

        async def chunks() -> AsyncIterator[bytes]:
            for begin in range(0, len(whole), 3):
                yield whole[begin : begin + 3]

        return StreamingResponse(chunks(), media_type=kind)

    serve_by_hand(api, on_call)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await listener.call("do") == "a \ufffd b \U0001f600"


async def test_an_endless_event_is_too_large(opened: Any, api: Any) -> None:
    """A long stream of small events is not."""

    def on_call(message: dict[str, Any], _: str) -> Response:
        async def events() -> AsyncIterator[bytes]:
            for _ in range(20):
                yield b": a comment\n\n" * 100
            if message["params"]["arguments"]:
                for _ in range(20):
                    yield b"data: " + b"x" * 2000 + b"\n"
            yield b"data: " + JSONResponse(text_result(message, "done")).body + b"\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    serve_by_hand(api, on_call)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True, max_answer_bytes=20_000)
    assert await listener.call("do") == "done"
    with pytest.raises(CallError) as large:
        await listener.call("do", much=True)
    assert large.value.code == "RESULT_TOO_LARGE"


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (
            Response(status_code=401),
            "source s: it answered HTTP 401. It rejects the daemon's secret; ask the operator to correct auth",
        ),
        (Response(status_code=404), "it answered HTTP 404; check url in [sources.s]"),
        (Response(status_code=503), "source s: it answered HTTP 503"),
        (Response("<html>", media_type="text/html"), "Unexpected content type: text/html"),
        (Response(status_code=307, headers={"location": "http://169.254.169.254/"}), "169.254.169.254/ not followed"),
    ],
    ids=["401", "404", "503", "html", "redirect"],
)
async def test_a_failed_connection_is_explained(opened: Any, api: Any, answer: Response, problem: str) -> None:
    """From the HTTP response, for the operator."""
    api.answers = [answer]
    listener = await opened(url=f"{api.url}/mcp", allow_private=True, ready=False)
    await listener.until(lambda: bool(listener.problems))
    assert problem in listener.problems[0]


async def test_closing_does_not_wait_for_the_server(opened: Any, api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the server does not answer the DELETE."""
    monkeypatch.setattr(upstream_http, "_CLOSE_S", 0.05)
    serve_by_hand(api, lambda message, session: JSONResponse(text_result(message, session)), answers_delete=False)
    listener = await opened(url=f"{api.url}/mcp", allow_private=True)
    assert await listener.call("do") == "session-1"
    running = next(task for task in asyncio.all_tasks() if "McpSource.run" in repr(task))
    running.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait([running])


async def test_streams_are_opened_at_a_limited_rate(api: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may end each stream at once, and demand the next one without a pause."""
    monkeypatch.setattr(upstream_http, "STREAMS_AT_ONCE", 1.0)
    monkeypatch.setattr(upstream_http, "STREAMS_PER_S", 0.001)
    network = CheckedNetwork(AddressPolicy(True))
    transport = SourceTransport(network, dict, 1000)
    statuses: list[int] = []
    for _ in range(2):
        exchange = UpstreamExchange(deadline=asyncio.get_running_loop().time() + 5.0 - 4.5 * len(statuses))
        with recorded_in(exchange):
            answer = await transport.handle_async_request(httpx2.Request("GET", api.url))
            statuses.append(answer.status_code)
            await answer.aclose()
    await network.close()
    assert statuses == [200, 502]
    assert len(api.asked) == 1
