"""A daemon with agents whose models follow scripts."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import SIMULATOR_KEY, Simulator

from .hosted import AGENTS, SMALL_MODELS, Hosted, fill


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def hosted(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Hosted]:
    """A daemon with ``AGENTS``, its client and its simulator, for all tests of a module."""
    directory = tmp_path_factory.mktemp("agents")
    async with Simulator(providers=["small"]) as simulator:
        small = SMALL_MODELS.format(url=simulator.base_url("small"), key=SIMULATOR_KEY)
        (directory / "toold.toml").write_text(AGENTS + small)
        environment = simulated_environment(directory / "state", simulator)
        settings = load_settings({}, env=environment, cwd=directory)
        async with running(settings, [fill]) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            yield Hosted(client, simulator, daemon, directory)
