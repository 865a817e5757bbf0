"""A daemon whose sources are the agents of another daemon in the same process."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import CallResult, MCPWebSocketClient
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

AGENTS = """
[agents.helper]
description = "Helps."
prompt = "You help."
tools = ["echo"]

[agents.careful]
description = "Asks before it writes."
prompt = "Write."
tools = ["echo"]
approve = ["echo"]
"""

SOURCES = """
[sources.far]
type = "a2a"
url = "{url}/agents/helper"
auth = {{ type = "bearer", file = "peer.token" }}
allow_private = true
deduplicates = true

[sources.wary]
type = "a2a"
url = "{url}/agents/careful/.well-known/agent.json"
auth = {{ type = "bearer", file = "peer.token" }}
allow_private = true

[agents.boss]
description = "Calls a remote agent."
prompt = "Delegate."
tools = ["far", "wary"]
"""


@dataclass(frozen=True)
class TwoDaemons:
    """The daemon with the agents, and the one that calls them."""

    peer: Daemon
    caller: Daemon
    client: MCPWebSocketClient
    directory: Path

    async def call(self, tool: str, **arguments: Any) -> CallResult:
        return await self.client.call(tool, arguments)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def two(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TwoDaemons]:
    """Both daemons, for all tests of a module."""
    directory = tmp_path_factory.mktemp("a2a")
    peer, caller = directory / "peer", directory / "caller"
    for path in (peer, caller):
        path.mkdir()
    (peer / "toold.toml").write_text(AGENTS)
    async with Simulator() as simulator:
        environment = simulated_environment(peer / "state", simulator)
        async with running(load_settings({}, env=environment, cwd=peer)) as serving:
            (caller / "peer.token").write_text(TOKEN)
            (caller / "toold.toml").write_text(SOURCES.format(url=f"http://127.0.0.1:{serving.http.port}"))
            settings = load_settings({}, env=simulated_environment(caller / "state", simulator), cwd=caller)
            async with running(settings) as calling:
                await calling.sources.loaded()
                await calling.publisher.published()
                async with MCPWebSocketClient(calling.address().url, token=TOKEN) as client:
                    yield TwoDaemons(serving, calling, client, caller)
