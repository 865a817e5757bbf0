"""Sources of real MCP servers, as programs and over HTTP."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from toold.protocol.error_codes import CallError
from toold.sources import read_sources
from toold.sources.mcp import mcp_source
from toold.sources.mcp.mcp_source import McpSource
from toold.sources.pin_storage import PinFiles
from toold.sources.source import SourceNote
from toold.sources.source_settings import McpSettings
from toold.tools import Tool, ToolOutput

SDK_PROGRAM = Path(__file__).parent / "server_program.py"
PLAIN_PROGRAM = Path(__file__).parent / "plain_program.py"


class FakeListener:
    """Records what a source publishes, and calls its tools."""

    def __init__(self, source: McpSource, context: Callable[[float], Any]) -> None:
        self.source = source
        self.tools: dict[str, Tool] = {}
        self.notes: Sequence[SourceNote] = ()
        self.problems: list[str] = []
        self.published = 0
        self.restored: list[str] = []
        self._context = context

    def publish(self, tools: Sequence[Tool], notes: Sequence[SourceNote]) -> None:
        self.tools, self.notes = {tool.name: tool for tool in tools}, notes
        self.published += 1

    def restore(self, tools: Sequence[Tool]) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.restored = list(self.tools)

    def report_problem(self, problem: str) -> None:
        self.problems.append(problem)

    @property
    def listed(self) -> set[str]:
        return {name for name, tool in self.tools.items() if tool.withheld is None}

    async def until(self, done: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(0.01)

    async def call(self, tool: str, timeout_s: float = 60.0, context: Any = None, **arguments: Any) -> ToolOutput | str:
        result = await self.tools[tool].run(arguments, context or self._context(timeout_s))
        assert isinstance(result, ToolOutput | str)
        return result

    async def call_until_available(self, tool: str, **arguments: Any) -> ToolOutput | str:
        """Returns the answer once the server is available again."""
        async with asyncio.timeout(60):
            while True:
                try:
                    return await self.call(tool, **arguments)
                except CallError as error:
                    if not error.retryable:
                        raise
                await asyncio.sleep(0.02)


@pytest.fixture
def configure_server(starts_processes: None, tmp_path: Path) -> Callable[..., list[str]]:
    """A function that sets the behaviour of the next start of the SDK's server, and returns its command."""
    return _writer_of(tmp_path / "behaviour.json", [sys.executable, str(SDK_PROGRAM)])


@pytest.fixture
def configure_plain_server(starts_processes: None, tmp_path: Path) -> Callable[..., list[str]]:
    """Like ``configure_server``, for a server with the same tools that starts ten times as fast."""
    return _writer_of(tmp_path / "behaviour.json", [sys.executable, "-S", str(PLAIN_PROGRAM)])


def _writer_of(state: Path, command: list[str]) -> Callable[..., list[str]]:
    def write(**behaviour: Any) -> list[str]:
        state.write_text(json.dumps(behaviour), encoding="utf-8")
        return [*command, "--state", str(state)]

    return write


Opening = Callable[..., Awaitable[FakeListener]]


@pytest.fixture
async def opened(
    tmp_path: Path, context_with: Callable[[float], Any], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Opening]:
    """A function that runs a source until the test ends, by default once its tools are published."""
    monkeypatch.setattr(mcp_source, "FIRST_RECONNECT_S", 0.05)
    async with AsyncExitStack() as stack:

        async def open_(name: str = "s", *, taken: Any = (), ready: bool = True, **table: Any) -> FakeListener:
            listener = await stack.enter_async_context(running_source(tmp_path, context_with, name, taken, table))
            if ready:
                await listener.until(lambda: listener.published > 0)
            return listener

        yield open_


@asynccontextmanager
async def running_source(
    directory: Path, context_with: Callable[[float], Any], name: str, taken: Any, table: dict[str, Any]
) -> AsyncIterator[FakeListener]:
    """Runs a source until the block ends."""
    settings = read_sources({name: {"type": "mcp", **table}})[name]
    assert isinstance(settings, McpSettings)
    source = McpSource(name, settings, PinFiles(directory / "pins"), lambda: taken)
    listener = FakeListener(source, context_with)
    running = asyncio.create_task(source.run(listener))
    try:
        yield listener
    finally:
        running.cancel()
        await asyncio.wait([running])
        await source.close()


@asynccontextmanager
async def serving(command: Sequence[str], *options: str, port: int = 0) -> AsyncIterator[tuple[int, Any]]:
    """Runs the server over HTTP as a process; yields its port."""
    process = await asyncio.create_subprocess_exec(
        *command, "--http", str(port), *options, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout
        yield int(await process.stdout.readline()), process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()
