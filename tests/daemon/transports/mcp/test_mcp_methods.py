"""The MCP methods, over real sockets."""

from collections.abc import Callable
from typing import Any

import pytest
from mcp_types import methods
from toold.daemon.app import Daemon
from toold.tools import Tool

from .conftest import Connect, Serve

OLDER = pytest.mark.parametrize("revision", ["2025-11-25", "2025-06-18", "2025-03-26"])


async def nothing(*_: Any) -> str:
    return "nothing"


@pytest.fixture
async def daemon(serve: Serve, make_tool: Callable[..., Tool]) -> Daemon:
    return await serve(make_tool("b", nothing), make_tool("a", nothing), TOOLD_DEFAULT_TOOLSET="full")


@OLDER
async def test_initialize(connect: Connect, daemon: Daemon, revision: str) -> None:
    """It negotiates the revision and returns the server's name, capabilities and instructions."""
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    result = await connect(daemon, revision).result("initialize", params)
    methods.validate_server_result("initialize", revision, result)
    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "toold"
    assert result["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}


async def test_initialize_ignores_the_version_header(connect: Connect, daemon: Daemon) -> None:
    """``initialize`` negotiates the revision, so it is not refused because of the header."""
    client = connect(daemon, "2024-10-07")
    assert (await client.result("initialize", {"protocolVersion": "2024-10-07"}))["protocolVersion"] == "2025-11-25"


async def test_discover(connect: Connect, daemon: Daemon) -> None:
    """The stateless revisions, and the same description."""
    result = await connect(daemon).result("server/discover")
    methods.validate_server_result("server/discover", "2026-07-28", result)
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "toold"


async def test_instructions_are_equal_on_all_transports(connect: Connect, join: Any, daemon: Daemon) -> None:
    """One text, under 2 KB, as in hello_ack."""
    instructions = (await connect(daemon).result("server/discover"))["instructions"]
    older = (await connect(daemon, "2025-06-18").result("initialize"))["instructions"]
    assert instructions == older == daemon.instructions(daemon.router.catalog.view("full"))
    assert "a, b" in instructions
    assert len(instructions.encode()) < 2048


@pytest.mark.parametrize("revision", ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"])
async def test_tools_list(connect: Connect, daemon: Daemon, revision: str) -> None:
    """The tools by name, with annotations, valid by the revision's types."""
    result = await connect(daemon, revision).result("tools/list")
    methods.validate_server_result("tools/list", revision, result)
    assert [tool["name"] for tool in result["tools"]] == ["a", "b"]
    assert result["tools"][0]["annotations"]["readOnlyHint"] is True
    assert "nextCursor" not in result
    assert ("ttlMs" in result) is (revision == "2026-07-28")


async def test_an_invalid_cursor(connect: Connect, daemon: Daemon) -> None:
    """An error of the request."""
    status, error = await connect(daemon).error("tools/list", {"cursor": "x"})
    assert (status, error["code"]) == (400, -32602)


@OLDER
async def test_ping_and_set_level(connect: Connect, daemon: Daemon, revision: str) -> None:
    """A ping is answered; a log level is accepted, and no logs are sent."""
    client = connect(daemon, revision)
    assert await client.result("ping") == {}
    assert await client.result("logging/setLevel", {"level": "debug"}) == {}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "tasks/result"])
async def test_methods_removed_in_the_stateless_revision(connect: Connect, daemon: Daemon, method: str) -> None:
    """They are not found there."""
    assert (await connect(daemon).error(method))[0] == 404


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-03-26"])
@pytest.mark.parametrize("method", ["tasks/get", "server/discover", "subscriptions/listen", "resources/erase"])
async def test_methods_missing_in_older_revisions(connect: Connect, daemon: Daemon, revision: str, method: str) -> None:
    """Later methods, and those that are not offered, are not found."""
    assert (await connect(daemon, revision).error(method, {"taskId": "x"}))[1]["code"] == -32601
