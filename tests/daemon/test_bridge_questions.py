"""Questions over stdio: the official SDK's client at one end of ``toold mcp``, a tool at the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp.client import Client as SdkClient
from mcp.shared.message import SessionMessage
from tests.cli.bridge.conftest import Editor, channel
from tests.daemon.test_source_questions import called, daemon_with_sources
from toold.cli.bridge import DaemonStarter, StdioBridge

MODES = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])


@asynccontextmanager
async def pipe_of(editor: Editor) -> AsyncIterator[Any]:
    """The editor's end as a transport of the SDK."""
    to_client, from_bridge = anyio.create_memory_object_stream[Any](100)
    to_bridge, from_client = anyio.create_memory_object_stream[Any](100)

    async def read() -> None:
        while True:
            message = await editor._lines.get()
            await to_client.send(SessionMessage(types.jsonrpc_message_adapter.validate_python(message)))

    async def write() -> None:
        async for item in from_client:
            editor.send_raw(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    tasks = [asyncio.create_task(read()), asyncio.create_task(write())]
    try:
        yield from_bridge, to_bridge
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        for stream in (to_client, from_bridge, to_bridge, from_client):
            stream.close()


@MODES
async def test_an_editor_is_asked(run_with: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """By requests or in rounds; if it cannot answer, the error says so, in 2026-07-28 that of the request."""
    answers = [types.ElicitResult(action="accept", content={"city": "Rome"}), types.ElicitResult(action="decline")]

    async def fill_in(_: Any, params: Any) -> types.ElicitResult:
        return answers[0] if params.message.startswith("old asks") else answers[1]

    async def roots(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=tmp_path.as_uri())])

    async with daemon_with_sources(run_with, tmp_path) as daemon, channel() as (lines, editor, close):
        monkeypatch.setenv("TOOLD_HOST", "127.0.0.1")
        monkeypatch.setenv("TOOLD_PORT", str(daemon.websocket.port))
        env = {"TOOLD_HOST": "127.0.0.1", "TOOLD_PORT": "1", "TOOLD_STATE_DIR": str(tmp_path)}
        bridge = StdioBridge(lines, DaemonStarter(env), toolset=None, directory=tmp_path)
        serving = asyncio.create_task(bridge.serve())
        transport: Any = pipe_of(editor)
        callbacks: dict[str, Any] = {"elicitation_callback": fill_in, "list_roots_callback": roots}
        client = SdkClient(transport, mode=mode, cache=None, **callbacks)
        async with client:
            ordered = (await called(client, "order")).split(" | ")
            assert ordered[0] == "to Rome"
            assert ordered[1].startswith("error: ")
            assert await called(client, "look") == f"{tmp_path.as_uri()} | {tmp_path.as_uri()}"
            old, new = (await called(client, "think")).split(" | ")
            assert old.startswith("error: ")
            assert new.startswith("error: " if mode == "legacy" else '-32021 {"sampling": {}}: ')
            for text in (old, new):
                assert "has not declared that it can ask a model" in text
        close()
        await serving
        await bridge.close()
