"""What clients of a daemon get of a server's tools is what they get from the server itself."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import httpx2
import pytest
import pytest_asyncio
from mcp.client import Client as SdkClient
from mcp.client.streamable_http import streamable_http_client
from mcp_types import RequestParamsMeta, TextContent
from tests.cli.bridge.conftest import Editor, channel
from tests.daemon.app_requests import NO_SDKS, call
from tests.daemon.transports.mcp.conftest import Client
from tests.gateway.rich_server import ERROR_TEXT, TOOLS, WRAPPED, serving_richly
from tests.peers.conftest import PEERS, require
from tests.peers.test_peers import PROGRAMS
from toold.cli.bridge import DaemonStarter, StdioBridge
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running

Json = dict[str, Any]
REVISIONS = pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25"])
CALLS: list[tuple[str, Json]] = [
    ("blocks", {}),
    ("blocks", {"n": 3}),
    ("bare", {}),
    ("fails", {}),
    ("fails_typed", {}),
    ("wrapped", {"text": "hi"}),
]
OWN_META = {"toold/metadata", "toold/error", "io.modelcontextprotocol/serverInfo"}


class World:
    """A server, a daemon with it as a source, and clients of both."""

    def __init__(self, port: int, daemon: Any, editor: Editor) -> None:
        self.port = port
        self.daemon = daemon
        self.editor = editor
        token = (daemon.settings.state_dir / "token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        self._direct = httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60)
        url = f"http://127.0.0.1:{daemon.http.port}"
        self._through = httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60)

    def direct(self, revision: str) -> Client:
        return Client(self._direct, revision)

    def through(self, revision: str) -> Client:
        return Client(self._through, revision)

    async def close(self) -> None:
        await self._direct.aclose()
        await self._through.aclose()


@asynccontextmanager
async def gateway(directory: Path) -> AsyncIterator[World]:
    async with serving_richly() as port:
        state = directory / "state"
        (directory / "toold.toml").write_text(
            f'spill_bytes = 262144\n[sources.rich]\ntype = "mcp"\nallow_private = true\ntimeout_s = 1.0\n'
            f'url = "http://127.0.0.1:{port}/mcp"\n'
        )
        env = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(state), "TOOLD_SIMULATE": "true"}
        async with running(load_settings({}, env=env | NO_SDKS, cwd=directory)) as daemon:
            async with asyncio.timeout(60):
                while "wrapped" not in {tool.name for tool in daemon.router.catalog.registry.tools}:
                    await asyncio.sleep(0.02)
            async with channel(20_000_000) as (lines, editor, close):
                starter = DaemonStarter({"TOOLD_STATE_DIR": str(state)})
                bridge = StdioBridge(lines, starter, toolset=None, directory=directory)
                serving = asyncio.create_task(bridge.serve())
                world = World(port, daemon, editor)
                try:
                    await editor.initialize()
                    yield world
                finally:
                    await world.close()
                    close()
                    await serving
                    await bridge.close()


@pytest.fixture(scope="module", autouse=True)
def environment(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The bridge's client finds the daemon by its environment."""
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("gateway")
        patch.setenv("TOOLD_STATE_DIR", str(directory / "state"))
        yield directory


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(environment: Path) -> AsyncIterator[World]:
    async with gateway(environment) as world:
        yield world


pytestmark = pytest.mark.asyncio(loop_scope="module")


def plain(result: Json) -> Json:
    """A result without what the daemon adds to its ``_meta``, which docs/mcp.md lists."""
    meta = {key: value for key, value in result.get("_meta", {}).items() if key not in OWN_META}
    return {key: value for key, value in result.items() if key != "_meta"} | ({"_meta": meta} if meta else {})


def error_free(result: Json) -> Json:
    """A result in which ``isError`` is absent if it is false, as both mean the same."""
    return {key: value for key, value in plain(result).items() if key != "isError" or value}


@REVISIONS
async def test_listings_are_equal(world: World, revision: str) -> None:
    """Each field of each tool; the daemon offers each call as a task where the revision has that."""
    direct = {tool["name"]: tool for tool in (await world.direct(revision).result("tools/list"))["tools"]}
    listed = (await world.through(revision).result("tools/list"))["tools"]
    through = {tool["name"]: tool for tool in listed if tool["name"] in direct}
    for tool in through.values():
        assert tool.pop("execution", None) == ({"taskSupport": "optional"} if revision == "2025-11-25" else None)
    assert through == direct
    assert len(direct) == len(TOOLS)


@REVISIONS
@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_results_are_equal(world: World, revision: str, tool: str, arguments: Json) -> None:
    """Block by block, over HTTP: order, kinds, annotations, metadata, errors."""
    direct = await world.direct(revision).call(tool, arguments)
    through = await world.through(revision).call(tool, arguments)
    assert error_free(through) == error_free(direct)


async def test_stdio_is_equal(world: World) -> None:
    """The bridge is a client of the WebSocket port, so that is lossless too."""
    await world.editor.initialize()
    answer = await world.editor.ask("tools/list")
    through = {tool["name"]: tool for tool in answer["result"]["tools"]}
    client = world.direct("2025-11-25")
    for tool in (await client.result("tools/list"))["tools"]:
        assert through[tool["name"]] == tool
    for name, arguments in CALLS:
        answer = await world.editor.ask("tools/call", name=name, arguments=arguments)
        assert error_free(answer["result"]) == error_free(await client.call(name, arguments))


async def test_a_server_instructs_models(world: World) -> None:
    """On each transport, with the server's name; the tool for models whose clients do not pass it on has it too."""
    said = "The source rich says about its tools: Be gentle."
    modern = await world.through("2026-07-28").result("server/discover")
    older = await world.through("2025-11-25").result("initialize", {"protocolVersion": "2025-11-25"})
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    stdio = (await world.editor.ask("initialize", **opening))["result"]
    shown = (await world.through("2026-07-28").call("00_INIT"))["content"][0]["text"]
    for text in (modern["instructions"], older["instructions"], stdio["instructions"], shown):
        assert said in text.splitlines()
    read = await world.through("2025-11-25").result("resources/read", {"uri": "toold://instructions/rich"})
    assert read["contents"] == [{"uri": "toold://instructions/rich", "mimeType": "text/plain", "text": "Be gentle."}]
    listed = await world.through("2025-11-25").result("resources/list")
    assert "toold://instructions/rich" in {entry["uri"] for entry in listed["resources"]}


TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
META: Json = {"com.example/tenant": {"id": 7}, "tracestate": "a=1", "plain": [None], "traceparent": TRACEPARENT}
OF_THIS_CONNECTION: Json = {"toold/timeout_ms": 9_000, "io.modelcontextprotocol/related-task": {"taskId": "x"}}


def seen_by_server(result: Json) -> Json:
    """What the server got in ``_meta``, besides what MCP reserves for its own connection with the daemon."""
    meta: Json = json.loads(result["content"][0]["text"])
    return {key: value for key, value in meta.items() if "modelcontextprotocol" not in key and key != "progress_token"}


@REVISIONS
async def test_the_meta_of_a_request_reaches_the_server(world: World, revision: str) -> None:
    """Over HTTP and stdio, without traces of the daemon; keys about the client's connection do not. The other way, a
    server cannot say what only the daemon says.
    """
    sent = {**META, **OF_THIS_CONNECTION}
    http = await world.through(revision).call("meta", meta=sent)
    stdio = (await world.editor.ask("tools/call", name="meta", arguments={}, _meta=sent))["result"]
    for result in (http, stdio):
        assert seen_by_server(result) == META
        assert result["_meta"]["x.test/seen"] == 1
        assert "toold/error" not in result["_meta"]
    header = {"traceparent": TRACEPARENT}
    assert seen_by_server(await world.through(revision).call("meta", headers=header)) == header
    assert seen_by_server(await world.through(revision).call("meta")) == {}


async def test_the_official_client_reaches_the_server_with_its_meta(world: World) -> None:
    """Of calls, also within a pipeline: there, only the span is passed on, since other keys are for the pipeline."""
    token = (world.daemon.settings.state_dir / "token").read_text().strip()
    url = f"http://127.0.0.1:{world.daemon.http.port}/mcp/full"
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, trust_env=False) as http,
        SdkClient(streamable_http_client(url, http_client=http), cache=None) as client,
    ):
        alone = await client.call_tool("meta", {}, meta=cast("RequestParamsMeta", META))
        steps = [{"id": "one", "tool_name": "meta"}]
        within = await client.call_tool("execute_pipeline", {"steps": steps}, meta=cast("RequestParamsMeta", META))
    assert seen_by_server(alone.model_dump(by_alias=True)) == META
    text = next(block.text for block in within.content if isinstance(block, TextContent))
    assert TRACEPARENT in text
    assert "tenant" not in text


async def test_websocket_clients_get_the_blocks(world: World) -> None:
    """Also those of an error, whose message has the first and last lines."""
    frame = await call(world.daemon, "fails")
    assert [block["type"] for block in frame["outputs"]] == ["text", "image"]
    assert frame["_meta"] == {"why": "paper"}
    message = frame["error"]["message"]
    assert len(message) < 17_000
    assert message.startswith("rich: first line\n")
    assert "characters cut" in message
    assert "last line" in message


async def test_a_failed_read_only_tool_had_no_effect(world: World) -> None:
    """Its error does not say that it may have had one; the whole text is passed on."""
    result = await world.through("2025-11-25").call("fails")
    assert result["_meta"]["toold/error"]["executed"] == "no"
    assert result["content"][0]["text"] == ERROR_TEXT


@pytest.mark.parametrize(
    ("tool", "arguments", "key"), [("wrapped", {}, "toold/error"), ("large_typed", {}, "toold/retained")]
)
async def test_own_answers_of_typed_tools_have_no_structured_content(
    world: World, tool: str, arguments: Json, key: str
) -> None:
    """Strict clients check it against the tool's schema, but not that of errors: a refusal, and a spilled answer."""
    http = await world.through("2025-11-25").call(tool, arguments)
    stdio = (await world.editor.ask("tools/call", name=tool, arguments=arguments))["result"]
    for result in (http, stdio):
        assert (result["isError"], "structuredContent" in result, key in result["_meta"]) == (True, False, True)
    assert "anyOf" not in WRAPPED


async def test_progress_extends_the_deadline(world: World) -> None:
    """A call that reports progress outlives the source's timeout; with its own timeout it does not."""
    client = world.through("2025-11-25")
    assert (await client.call("works", {"steps": 8}))["content"] == [{"type": "text", "text": "done"}]
    late = await client.call("works", {"steps": 8}, meta={"toold/timeout_ms": 600})
    assert late["_meta"]["toold/error"]["code"] == "TIMEOUT"


@pytest.mark.process
async def test_fastmcp_reads_the_same_data(world: World) -> None:
    """Its client unwraps a result by a keyword of the output schema, and accepts an error of a tool that has one."""
    require("fastmcp")
    token = (world.daemon.settings.state_dir / "token").read_text().strip()
    servers = [
        (f"http://127.0.0.1:{world.port}/mcp", {}),
        (f"http://127.0.0.1:{world.daemon.http.port}/mcp", {"Authorization": f"Bearer {token}"}),
    ]
    command = [str(PEERS / "fastmcp/bin/python"), str(PROGRAMS / "fastmcp_data.py"), json.dumps(servers)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    direct, through = json.loads(output)
    assert through == direct
    assert direct[0] == "hi"
