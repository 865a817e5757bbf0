"""HTTP with SSE of revision 2024-11-05: the SDK's client, and messages by hand."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import mcp_types as types
import pytest
import pytest_asyncio
from mcp.client import Client
from mcp.client.sse import sse_client
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.sources.pin_storage import PinFiles
from toold.tools import Arguments, ToolContext, tool

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),  # of earlier revisions
]


class Ask(Arguments):
    """Nothing."""


running = asyncio.Event()


@tool("slow", read_only=True, open_world=False)
async def slow(arguments: Ask, context: ToolContext) -> str:
    """Reports progress until it is cancelled."""
    for number in range(10_000):
        context.progress("working", number, 10_000)
        running.set()
        await asyncio.sleep(0.01)
    return "done"


@tool("roots", read_only=True, open_world=False)
async def roots(arguments: Ask, context: ToolContext) -> str:
    """Asks the client for its roots."""
    from toold.protocol.questions.client_question import read_question

    return str((await context.ask_client(read_question("roots/list", {})))["roots"][0]["uri"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def daemon(module_settings: Any) -> AsyncIterator[Daemon]:
    from toold.daemon.lifecycle import running as running_daemon

    async with running_daemon(module_settings, (slow, roots)) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def module_settings(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tests.daemon.app_requests import NO_SDKS
    from toold.daemon.config.setting_sources import load_settings

    directory = tmp_path_factory.mktemp("sse")
    (directory / "state").mkdir(mode=0o700)
    env = {
        "TOOLD_PORT": "0",
        "TOOLD_HTTP_PORT": "0",
        "TOOLD_SIMULATE": "true",
        "TOOLD_STATE_DIR": str(directory / "state"),
        **NO_SDKS,
    }
    return load_settings({}, env=env, cwd=directory)


def url_of(daemon: Daemon, path: str = "/sse/full") -> str:
    return f"http://127.0.0.1:{daemon.http.port}{path}"


def headers_of(daemon: Daemon) -> dict[str, str]:
    return {"authorization": f"Bearer {(daemon.settings.state_dir / 'token').read_text().strip()}"}


@asynccontextmanager
async def connected(daemon: Daemon, **more: Any) -> AsyncIterator[Client]:
    """The SDK's client."""
    transport: Any = sse_client(url_of(daemon), headers=headers_of(daemon))
    async with Client(transport, mode="legacy", **more) as client:
        yield client


async def test_the_sdks_client(daemon: Daemon) -> None:
    """Lists and calls tools, gets errors as results, and reads resources."""
    async with connected(daemon) as client:
        assert "echo" in {each.name for each in (await client.list_tools()).tools}
        answers = await asyncio.gather(*(client.call_tool("echo", {"value": number}) for number in range(20)))
        assert [answer.structured_content for answer in answers] == [{"result": number} for number in range(20)]
        failed = await client.call_tool("echo", {"valu": 1})
        assert failed.is_error
        read = await client.read_resource("toold://tool/echo")
        assert read.contents[0].uri == "toold://tool/echo"
        await daemon.store.flush()
        assert next(call.session_label for call in await daemon.store.audit.recent(1)).startswith("mcp")


async def test_progress_cancelling_and_questions(daemon: Daemon) -> None:
    """Progress and questions come on the stream; a cancelled call ends here, and is not answered."""
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)

    async def list_roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///home/ann")])

    async with connected(daemon, list_roots_callback=list_roots) as client:
        assert (await client.call_tool("roots", {})).content == [
            types.TextContent(type="text", text="file:///home/ann")
        ]
        running.clear()
        call = asyncio.create_task(client.call_tool("slow", {}, progress_callback=on_progress))
        await until(lambda: len(seen) > 1)
        call.cancel()
        await until(lambda: not any(call.tool.name == "slow" for call in daemon.router.calls))
        assert (await client.call_tool("echo", {"value": 1})).structured_content == {"result": 1}


class Wire:
    """A client that reads and writes messages itself."""

    def __init__(self, http: httpx.AsyncClient, lines: Any) -> None:
        self.http = http
        self._lines = lines
        self.endpoint = ""

    async def event(self) -> tuple[str, str]:
        """The next event."""
        kind = ""
        async for line in self._lines:
            if line.startswith("event: "):
                kind = line[7:]
            elif line.startswith("data: "):
                return kind, line[6:]
        raise AssertionError("the stream has ended")

    async def post(self, message: Any) -> httpx.Response:
        return await self.http.post(self.endpoint, json=message)

    async def ask(self, method: str, **params: Any) -> Any:
        answer = await self.post({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
        assert (answer.status_code, answer.content) == (202, b"")
        kind, data = await self.event()
        assert kind == "message"
        return json.loads(data)


@asynccontextmanager
async def wire(daemon: Daemon) -> AsyncIterator[Wire]:
    async with (
        httpx.AsyncClient(base_url=url_of(daemon, ""), headers=headers_of(daemon), trust_env=False, timeout=60) as http,
        http.stream("GET", "/sse/full", headers={"accept": "text/event-stream"}) as stream,
    ):
        client = Wire(http, stream.aiter_lines())
        kind, client.endpoint = await client.event()
        assert kind == "endpoint"
        yield client


async def test_the_handshake_of_2024(daemon: Daemon) -> None:
    """The revision is the client's; nothing but ``ping`` is served before ``initialize``."""
    async with wire(daemon) as client:
        assert (await client.ask("tools/list"))["error"]["message"] == "Send initialize first."
        assert (await client.ask("ping"))["result"] == {}
        params = {"protocolVersion": "2024-11-05", "clientInfo": {"name": "old"}, "capabilities": {}}
        begun = await client.ask("initialize", **params)
        assert begun["result"]["protocolVersion"] == "2024-11-05"
        assert (await client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})).status_code == 202
        answer = await client.ask("tools/call", name="echo", arguments={"value": 1})
        assert answer["result"]["content"][0]["text"] == "1"
        assert (await client.ask("no/such"))["error"]["code"] == -32601


async def test_what_is_refused(daemon: Daemon) -> None:
    """Batches, unknown streams, the streams of others, and requests without a token."""
    async with wire(daemon) as client:
        assert (await client.post([{"jsonrpc": "2.0", "method": "x"}])).status_code == 400
        unknown = await client.http.post("/messages/unknown", json={"jsonrpc": "2.0", "id": 1, "method": "ping"})
        assert unknown.status_code == 404
        no_token = await client.http.post(client.endpoint, json={}, headers={"authorization": "Bearer x"})
        assert no_token.status_code == 401
        assert (await client.http.get("/sse/nothing", headers={"accept": "text/event-stream"})).status_code == 404
        assert (await client.http.post("/sse", json={})).status_code == 405
        evil = await client.http.get("/sse", headers={"accept": "text/event-stream", "origin": "https://evil.example"})
        assert evil.status_code == 403


async def test_a_stream_that_ends_takes_its_calls_along(daemon: Daemon) -> None:
    """Those that only read; its address is then unknown."""
    running.clear()
    async with wire(daemon) as client:
        await client.ask("initialize", protocolVersion="2024-11-05", capabilities={})
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow", "arguments": {}}}
        await client.post(message)
        await running.wait()
        endpoint = client.endpoint
    await until(lambda: not any(call.tool.name == "slow" for call in daemon.router.calls))
    async with httpx.AsyncClient(trust_env=False) as http:
        gone = await http.post(url_of(daemon, endpoint), json={}, headers=headers_of(daemon))
        assert gone.status_code == 404


async def test_the_daemons_source_reads_its_own_server(daemon: Daemon, tmp_path: Any) -> None:
    """Both sides together."""
    from toold.sources import check_source, read_sources

    (tmp_path / "token").write_text((daemon.settings.state_dir / "token").read_text())
    auth = {"type": "bearer", "file": str(tmp_path / "token")}
    table = {"type": "mcp", "url": url_of(daemon), "transport": "sse", "allow_private": True, "auth": auth}
    report = await check_source("s", read_sources({"s": table})["s"], pins=PinFiles(tmp_path / "pins"))
    assert report.problem is None
    assert "s_echo" in report.tools or "echo" in report.tools
