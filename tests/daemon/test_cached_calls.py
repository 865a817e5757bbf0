"""``cache_s`` in a running daemon with an MCP server, whose tools count their calls."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types as types
import pytest
import uvicorn
from mcp.server.lowlevel import Server
from tests.daemon.app_requests import call
from tests.daemon.transports.mcp.conftest import Client
from tests.waiting import until
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.protocol.tool_call import LOCAL


class Shop:
    """The server: the tools ``price`` and ``stock`` are read-only, ``order`` is not."""

    def __init__(self) -> None:
        self.calls = 0
        self.description = "Look it up."

    async def list_tools(self, _: Any, __: Any) -> types.ListToolsResult:
        hints = {"price": True, "stock": True, "order": False}
        schema = {"type": "object", "properties": {"item": {"type": "string"}}}
        tools = [
            {
                "name": name,
                "description": self.description,
                "inputSchema": schema,
                "annotations": {"readOnlyHint": hint},
            }
            for name, hint in hints.items()
        ]
        return types.ListToolsResult.model_validate({"tools": tools})

    async def call_tool(self, _: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.calls += 1
        content = [types.TextContent(type="text", text=f"{params.name} {self.calls}")]
        return types.CallToolResult(content=content, structured_content={"calls": self.calls})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        """Serves over HTTP; yields the URL."""
        server: Server[Any] = Server("shop", on_list_tools=self.list_tools, on_call_tool=self.call_tool)
        app = server.streamable_http_app(stateless_http=True)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            http = uvicorn.Server(uvicorn.Config(app, log_level="error"))
            task = asyncio.create_task(http.serve([listener]))
            try:
                yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
            finally:
                http.should_exit = True
                await task


class World:
    """A daemon with the shop as a source, and its directory."""

    def __init__(self, shop: Shop, url: str, directory: Path, daemon: Daemon | None = None) -> None:
        self.shop = shop
        self._url = url
        self._directory = directory
        self._daemon = daemon

    @property
    def daemon(self) -> Daemon:
        assert self._daemon is not None
        return self._daemon

    def configure(self, cache_s: str) -> None:
        settings = f'[sources.shop]\ntype = "mcp"\nurl = "{self._url}"\nallow_private = true\ncache_s = {cache_s}\n'
        (self._directory / "toold.toml").write_text(settings)

    async def start(self, run_with: Any) -> None:
        self._daemon = await run_with()
        await self.listed(lambda: "price" in self.daemon.registry)

    async def listed(self, condition: Callable[[], bool]) -> None:
        await until(condition)
        await self.daemon.publisher.published()

    async def text(self, tool: str = "price", **arguments: Any) -> str:
        """The text of a call over WebSocket."""
        answer = await call(self.daemon, tool, **arguments)
        text = answer["outputs"][0]["text"]
        assert isinstance(text, str)
        return text


@pytest.fixture
async def world(run_with: Any, tmp_path: Path) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        shop = Shop()
        world = World(shop, await stack.enter_async_context(shop.serving()), tmp_path)
        world.configure("600")
        await world.start(run_with)
        yield world


async def test_a_result_answers_again_on_each_transport(world: World) -> None:
    """Over WebSocket and MCP, in both kinds of revisions: content and data are the same, and the metadata has the age.
    The metrics count it, and the audit row says so.
    """
    first = await call(world.daemon, "price", item="tea")
    second = await call(world.daemon, "price", item="tea")
    assert "cache_age_s" not in first["metadata"]
    assert second["metadata"]["cache_age_s"] >= 0
    assert (second["outputs"], second["structured"]) == (first["outputs"], first["structured"])
    token = (world.daemon.settings.state_dir / "token").read_text().strip()
    url, headers = f"http://127.0.0.1:{world.daemon.http.port}", {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, trust_env=False, timeout=60) as http:
        for revision in ("2026-07-28", "2025-11-25"):
            result = await Client(http, revision).call("price", {"item": "tea"})
            assert result["_meta"]["toold/metadata"]["cache_age_s"] >= 0
            assert (result["content"], result["structuredContent"]) == (first["outputs"], first["structured"])
        answer = await http.post("/tools/price", json={"item": "tea"})
        assert '"cache_age_s"' in answer.headers["toold-metadata"]
    assert world.shop.calls == 1
    assert b'toold_cached_calls_total{tool="price"} 4.0' in world.daemon.metrics.render()
    assert b'toold_calls_total{outcome="ok",tool="price"} 5.0' in world.daemon.metrics.render()
    rows = [row for row in await world.daemon.view.ended(LOCAL, 10) if row["tool"] == "price"]
    messages = [row["message"] or "" for row in rows]
    assert sum(message.startswith("answered with a cached result, ") for message in messages) == 4


async def test_tools_that_change_something_always_run(world: World) -> None:
    """The setting is for read-only tools alone."""
    assert [await world.text("order") for _ in range(2)] == ["order 1", "order 2"]


async def test_named_tokens_share_nothing(world: World) -> None:
    """The same call with another token runs."""
    tokens: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        changed, token = book.with_new("ci", 1.0)
        tokens.append(token)
        return changed

    change_tokens(world.daemon.settings.state_dir, add)
    await until(lambda: world.daemon.tokens.book.tokens)
    assert await world.text() == "price 1"
    assert (await call(world.daemon, "price", token=tokens[0]))["outputs"][0]["text"] == "price 2"
    assert await world.text() == "price 1"


async def test_children_get_cached_results(world: World) -> None:
    """An item of a batch is a call like any other."""
    await world.text(item="tea")
    batch = await call(world.daemon, "execute_batch", tool_name="price", items=[{"item": "tea"}, {"item": "rye"}])
    assert batch["structured"]["succeeded"] == 2
    assert world.shop.calls == 2


async def test_a_reload_clears_the_cache(world: World) -> None:
    """Also one that changes nothing of the source; patterns choose tools, and 0 turns the cache off."""
    assert [await world.text() for _ in range(2)] == ["price 1", "price 1"]
    await world.daemon.reload()
    assert await world.text() == "price 2"
    world.configure('{ price = 0, "*" = 60 }')
    await world.daemon.reload()
    # The tools of the last listing are there at once, and the new listing replaces them.
    await world.listed(
        lambda: world.daemon.sources.states[0].state == "ready" and world.daemon.registry.get("stock").cache_s == 60
    )
    assert [await world.text() for _ in range(2)] == ["price 3", "price 4"]
    assert [await world.text("stock") for _ in range(2)] == ["stock 5", "stock 5"]


async def test_a_changed_listing_clears_the_cache(world: World) -> None:
    """A tool that has changed is quarantined, and its results are gone when the operator approves it."""
    assert await world.text() == "price 1"
    world.shop.description = "Look it up elsewhere."
    world.daemon.sources.refresh()
    await world.listed(lambda: world.daemon.registry.get("price").withheld is not None)
    assert (await call(world.daemon, "price"))["error"]["code"] == "PERMISSION_DENIED"
    assert len(world.daemon.router.cache) == 0
    for version in world.daemon.sources.waiting("shop"):
        await world.daemon.sources.approve("shop", version.name, version.digest)
    await world.listed(lambda: world.daemon.registry.get("price").withheld is None)
    assert [await world.text() for _ in range(2)] == ["price 2", "price 2"]
