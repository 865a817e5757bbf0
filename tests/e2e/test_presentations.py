"""How tools are shown, on the daemon as it runs: by WebSocket, by MCP, and in files."""

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
async def test_few_are_listed_and_all_can_be_called(daemon: Any, toolset: str, names: list[str]) -> None:
    """By who asks for the toolset that ships, and sets nothing."""
    async with daemon.peer(toolset=toolset) as peer:
        assert await listed(peer) == names
        answer = await peer.call(uuid4().hex, "echo", text="not listed")
        assert answer["outputs"] == [{"type": "text", "text": "not listed"}]


@BOTH_WAYS
async def test_clients_of_mcp_are_shown_the_same(daemon: Any, mode: str) -> None:
    """At ``/mcp/code``; and the instructions are what ``00_INIT`` answers, there and by WebSocket."""
    async with connected(daemon, mode, "/mcp/code") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == CODE
        told = client.instructions
        said = await client.call_tool("00_INIT", {})
        assert [block.text for block in said.content if isinstance(block, TextContent)] == [told]
        index = await client.call_tool("read_stubs", {})
        assert "\ntools:\n" in "".join(block.text for block in index.content if isinstance(block, TextContent))
    async with daemon.peer(toolset="code") as peer:
        again = [await peer.call(uuid4().hex, "00_INIT") for _ in range(2)]
        assert [answer["outputs"][0]["text"] for answer in again] == [told, told]


async def test_the_init_tool_can_be_switched_off(start_daemon: Any) -> None:
    """It is listed nowhere then, and can be called all the same."""
    daemon = start_daemon(TOOLD_LIST_INIT="false")
    for toolset in ("full", "code"):
        async with daemon.peer(toolset=toolset) as peer:
            names = await listed(peer)
            assert "00_INIT" not in names
            assert "execute_code" in names
            assert (await peer.call(uuid4().hex, "00_INIT"))["error"] is None


def test_a_command_calls_what_is_not_listed(start_daemon: Any, command: Any, tmp_path: Path) -> None:
    """With values as the schema says, of an operator's toolset too; what is in no such toolset is told."""
    (tmp_path / "toold.toml").write_text('[toolsets.small]\ninclude = ["echo"]\npresentation = "code"\n')
    state = start_daemon(TOOLD_LIST_INIT="false").state
    for toolset in ("code", "small"):
        ended = command("call", "echo", "text=5", "delay_ms=1", "--toolset", toolset, state=state)
        assert (ended.returncode, ended.stdout, ended.stderr) == (0, "5\n", "")
    assert command("tools", "00_INIT", state=state).stdout.startswith("00_INIT  (read-only, idempotent)\n")
    ended = command("call", "version", "--toolset", "small", state=state)
    assert ended.returncode == 2
    assert "there is no tool 'version'" in ended.stderr


async def test_the_tools_are_written_to_files(start_daemon: Any, command: Any, tmp_path: Path) -> None:
    """A module for the daemon's own and one for each package, which are Python."""
    daemon = start_daemon()
    ended = command("stubs", "--out", str(tmp_path / "stubs"), state=daemon.state)
    assert (ended.returncode, ended.stderr) == (0, "")
    files = {path.name: path.read_text() for path in (tmp_path / "stubs").iterdir()}
    assert {"tools.py", "bad_tools.py"} <= files.keys()
    assert ended.stdout.count(" functions\n") == len(files)
    for name, source in files.items():
        compile(source, name, "exec")
    assert "async def bad_hangs(*, seconds: float = 60.0) -> Any:" in files["bad_tools.py"]
