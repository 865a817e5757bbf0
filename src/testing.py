"""Lets authors of tools test them in a daemon inside the test's process, with simulated vendors and a client.

docs/testing-a-tool.md describes it. No part of the daemon imports it.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .client import MCPWebSocketClient
from .daemon import load_settings
from .daemon.lifecycle import running
from .providers.simulator import SIMULATOR_KEY, Simulator
from .tools import Tool, ToolRegistry, load_registry

_TOKEN = "a-token-for-tests"  # noqa: S105 - of a daemon that lives as long as a test


@dataclass(frozen=True, slots=True)
class DaemonUnderTest:
    """A running daemon, for a test."""

    client: MCPWebSocketClient
    """Calls the tools: ``await daemon.client.call("review", {"path": "a.py"})``."""
    simulator: Simulator
    """Answers in place of the vendors. ``plan`` sets the next answer; ``log`` has the requests to models."""


@asynccontextmanager
async def daemon_under_test(
    *tools: Tool, workspace: Path | None = None, env: dict[str, str] | None = None
) -> AsyncIterator[DaemonUnderTest]:
    """A daemon with these tools in addition to all others, on free loopback ports, until the block ends.

    Calls take the whole call path. The daemon reads neither this process's environment nor the caller's home, has a
    separate state directory, and asks no vendor.

    Args:
        tools: the tools under test; their package need not be installed.
        workspace: the directory whose files the tools may read; None for an empty one.
        env: settings, as environment variables: ``{"TOOLD_MAX_RUNNING": "1"}``.

    Raises:
        ValueError: a tool has the name of a built-in tool, or two tools have the same name.
        SettingsError: a setting is invalid.
    """
    _check_names(tools, load_registry())
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(TemporaryDirectory(prefix="toold-test-")))
        (directory / "workspace").mkdir()
        simulator = await stack.enter_async_context(Simulator())
        settings = {
            "TOOLD_PORT": "0",
            "TOOLD_HTTP_PORT": "0",
            "TOOLD_STATE_DIR": str(directory / "state"),
            "TOOLD_TOKEN": _TOKEN,
            "TOOLD_WORKSPACE": str((workspace or directory / "workspace").absolute()),
            "TOOLD_KIMI_SDK": "http",
            "TOOLD_GLM_SDK": "http",
            "TOOLD_GRACE_PERIOD_S": "1",
            "KIMI_API_KEY": SIMULATOR_KEY,
            "KIMI_BASE_URL": simulator.kimi_base_url,
            "GLM_API_KEY": SIMULATOR_KEY,
            "GLM_BASE_URL": simulator.glm_base_url,
        }
        loaded = load_settings({}, env=settings | (env or {}), cwd=directory)
        daemon = await stack.enter_async_context(running(loaded, tools))
        client = MCPWebSocketClient(daemon.address().url, token=_TOKEN)
        yield DaemonUnderTest(await stack.enter_async_context(client), simulator)


def _check_names(tools: tuple[Tool, ...], registry: ToolRegistry) -> None:
    taken: set[str] = set()
    for tool in tools:
        if tool.name in taken or (tool.name in registry and registry.get(tool.name).function is not tool.function):
            raise ValueError(f"the name {tool.name!r} is taken: a daemon would skip this tool; give it another name")
        taken.add(tool.name)
