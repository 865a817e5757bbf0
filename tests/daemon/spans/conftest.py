"""A collector for each test that asks for one, and daemons that send to it."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.daemon.app_requests import NO_SDKS
from tests.daemon.spans.collector import Collector, running_collector
from toold.client import MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.daemon.spans import span_sender
from toold.tools import Tool

Serve = Callable[..., Awaitable[tuple[Daemon, MCPWebSocketClient]]]


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture
async def serve(tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Serve]:
    """``await serve(*tools, stack=…, **environment)``: a simulated daemon that sends its traces to the collector, and a
    client of it, until the test or the given stack ends."""
    monkeypatch.setattr(span_sender, "DELAY_S", 0.01)
    async with AsyncExitStack() as at_end:

        async def start(
            *tools: Tool, stack: AsyncExitStack = at_end, state: str = "state", toml: str = "", **env: str
        ) -> tuple[Daemon, MCPWebSocketClient]:
            (tmp_path / "toold.toml").write_text(toml)
            own = {"TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0", "TOOLD_STATE_DIR": str(tmp_path / state)}
            own |= {"TOOLD_SIMULATE": "true", "TOOLD_OTEL__ENDPOINT": collector.url, **NO_SDKS}
            daemon = await stack.enter_async_context(running(load_settings({}, env=own | env, cwd=tmp_path), tools))
            token = (tmp_path / state / "token").read_text().strip()
            client = MCPWebSocketClient(daemon.address().url, token=token)
            return daemon, await stack.enter_async_context(client)

        yield start
