"""Presentations on a running daemon: over WebSocket, over MCP, and as files."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from mcp_types import TextContent
from tests.e2e.test_mcp import BOTH_WAYS, connected

CODE = ["00_INIT", "execute_code", "read_stubs", "search_tools"]
HYBRID = ["00_INIT", "chat", "execute_code", "read_result", "read_stubs", "search_tools", "status"]


async def listed(peer: Any) -> list[str]:
    await peer.send(op="list_tools")
    return [tool["name"] for tool in (await peer.until("list_tools_res"))["tools"]]


@pytest.mark.parametrize(("toolset", "names"), [("code", CODE), ("hybrid", HYBRID)])
async def test_a_presentation_lists_few_tools_and_allows_all(daemon: Any, toolset: str, names: list[str]) -> None:
    """A shipped toolset lists few tools and allows all, without any settings."""
    async with daemon.peer(toolset=toolset) as peer:
        assert await listed(peer) == names
        answer = await peer.call(uuid4().hex, "echo", text="not listed")
        assert answer["outputs"] == [{"type": "text", "text": "not listed"}]


@BOTH_WAYS
async def test_mcp_clients_get_the_same_presentation(daemon: Any, mode: str) -> None:
    """``/mcp/code`` has the same presentation; its instructions equal the answer of ``00_INIT``, over both
    transports.
    """
    async with connected(daemon, mode, "/mcp/code") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == CODE
        reported = client.instructions
        reply = await client.call_tool("00_INIT", {})
        assert [block.text for block in reply.content if isinstance(block, TextContent)] == [reported]
        index = await client.call_tool("read_stubs", {})
        assert "\ntools:\n" in "".join(block.text for block in index.content if isinstance(block, TextContent))
    async with daemon.peer(toolset="code") as peer:
        calls = [await peer.call(uuid4().hex, "00_INIT") for _ in range(2)]
        assert [answer["outputs"][0]["text"] for answer in calls] == [reported, reported]


async def test_init_tool_can_be_unlisted(start_daemon: Any) -> None:
    """With ``list_init = false`` the tool is not listed, and can still be called."""
    daemon = start_daemon(TOOLD_LIST_INIT="false")
    for toolset in ("full", "code"):
        async with daemon.peer(toolset=toolset) as peer:
            names = await listed(peer)
            assert "00_INIT" not in names
            assert "execute_code" in names
            assert (await peer.call(uuid4().hex, "00_INIT"))["error"] is None


def test_a_command_calls_unlisted_tools(start_daemon: Any, command: Any, tmp_path: Path) -> None:
    """A command converts values by the schema of an unlisted tool, also with an operator's toolset; a tool outside the
    toolset is an error.
    """
    (tmp_path / "toold.toml").write_text('[toolsets.small]\ninclude = ["echo"]\npresentation = "code"\n')
    state = start_daemon(TOOLD_LIST_INIT="false").state
    for toolset in ("code", "small"):
        ended = command("call", "echo", "text=5", "delay_ms=1", "--toolset", toolset, state=state)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "5\n", "")
    assert command("tools", "00_INIT", state=state).stdout.startswith("00_INIT  (read-only, idempotent)\n")
    ended = command("call", "version", "--toolset", "small", state=state)
    assert ended.returncode == 2
    assert "there is no tool 'version'" in ended.stderr


async def test_stubs_are_written_to_files(start_daemon: Any, command: Any, tmp_path: Path) -> None:
    """The command writes one Python module for the built-in tools and one per package."""
    daemon = start_daemon()
    ended = command("stubs", "--out", str(tmp_path / "stubs"), state=daemon.state)
    assert (ended.returncode, ended.stderr) == (0, "")
    files = {path.name: path.read_text() for path in (tmp_path / "stubs").iterdir()}
    assert {"tools.py", "bad_tools.py"} <= files.keys()
    assert ended.stdout.count(" functions\n") == len(files)
    for name, source in files.items():
        compile(source, name, "exec")
    assert "async def bad_hangs(*, seconds: float = 60.0) -> Any:" in files["bad_tools.py"]
