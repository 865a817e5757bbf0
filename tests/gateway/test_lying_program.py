"""A server over standard streams whose messages are lies: its own callers get a clear error, and callers of another
server notice nothing. A message without an end is tested in ``tests/sources/mcp/test_upstream_process.py``.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.daemon.app_requests import NO_SDKS
from tests.daemon.transports.mcp.conftest import Client
from tests.waiting import until
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running

pytestmark = [pytest.mark.process, pytest.mark.asyncio(loop_scope="module")]

LIAR = Path(__file__).parent / "lying_program.py"
HONEST = Path(__file__).parents[1] / "sources/mcp/plain_program.py"


@dataclass
class World:
    """A daemon with the liar and an honest server as sources."""

    daemon: Daemon
    client: Client

    async def lie(self, how: str, **meta: Any) -> dict[str, Any]:
        """The result of a lie."""
        return await self.client.call("lie", {"how": how}, meta=meta)

    async def is_honest(self) -> None:
        """Checks that the other server answers."""
        assert (await self.client.call("echo_honestly", {"text": "hi"}))["structuredContent"] == {"result": "hi"}


@asynccontextmanager
async def _opened(directory: Path) -> AsyncIterator[World]:
    (directory / "behaviour.json").write_text("{}")
    liar = [sys.executable, "-S", str(LIAR)]
    honest = [sys.executable, "-S", str(HONEST), "--state", str(directory / "behaviour.json")]
    (directory / "toold.toml").write_text(
        f'[sources.liar]\ntype = "mcp"\ncommand = {json.dumps(liar)}\n'
        f'[sources.honest]\ntype = "mcp"\ncommand = {json.dumps(honest)}\nrename = {{ echo = "echo_honestly" }}\n'
    )
    env = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(directory / "state")}
    settings = load_settings({}, env=env | NO_SDKS | {"TOOLD_SIMULATE": "1", "TOOLD_AUTH": "0"}, cwd=directory)
    async with running(settings) as daemon:
        await until(lambda: {"lie", "echo_honestly"} <= {tool.name for tool in daemon.router.catalog.registry.tools})
        base = f"http://127.0.0.1:{daemon.http.port}"
        async with httpx.AsyncClient(base_url=base, trust_env=False, timeout=60) as http:
            yield World(daemon, Client(http, "2025-11-25"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with _opened(tmp_path_factory.mktemp("liar")) as world:
        yield world


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("of another shape", "PROVIDER_ERROR", "not valid MCP"),
        ("of no tool", "PROVIDER_ERROR", "not valid MCP"),
        ("nested data", "PROVIDER_ERROR", "not valid MCP"),
        ("nested metadata", "PROVIDER_ERROR", "not valid MCP"),
    ],
)
async def test_an_answer_that_is_none(world: World, how: str, code: str, message: str) -> None:
    """The error comes at once, and names the server."""
    error = (await world.lie(how))["_meta"]["toold/error"]
    assert (error["code"], message in error["message"], "liar" in error["message"]) == (code, True, True)
    await world.is_honest()


@pytest.mark.parametrize("how", ["of no call", "neither result nor error"])
async def test_a_call_without_an_answer(world: World, how: str) -> None:
    """It ends at its deadline; a later one gets its own answer."""
    error = (await world.lie(how, **{"toold/timeout_ms": 600}))["_meta"]["toold/error"]
    assert (error["code"], "liar" in error["message"]) == ("TIMEOUT", True)
    assert (await world.lie("twice"))["content"] == [{"type": "text", "text": "first"}]
    await world.is_honest()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("rubbish", "after rubbish"),
        ("a flood", "after the flood"),
        ("progress of others", "after progress"),
        ("a request", "after requests"),
    ],
)
async def test_what_else_it_sends_changes_nothing(world: World, how: str, said: str) -> None:
    """Lines without a message, messages that no one awaits, and requests that are not valid."""
    assert (await world.lie(how))["content"] == [{"type": "text", "text": said}]
    await world.is_honest()


@pytest.mark.parametrize("how", ["the end", "closed"])
async def test_a_server_that_goes_away_is_started_again(world: World, how: str) -> None:
    """The call may have been executed, and is not repeated."""
    error = (await world.lie(how))["_meta"]["toold/error"]
    assert (error["code"], error["executed"]) == ("SERVICE_UNAVAILABLE", "maybe")
    assert "liar" in error["message"]
    await world.is_honest()
    async with asyncio.timeout(60):
        while (answer := await world.lie("twice")).get("isError"):
            assert answer["_meta"]["toold/error"]["retryable"]
            await asyncio.sleep(0.05)
    assert answer["content"] == [{"type": "text", "text": "first"}]
