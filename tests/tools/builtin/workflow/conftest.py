"""A daemon with the real tools, whose vendors are a simulator that counts requests, and a definition for tests."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.client import MCPWebSocketClient
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator
from toold.tools.builtin.workflow.workflow_definition import WorkflowDefinition

if TYPE_CHECKING:
    from tests.tools.conftest import Served

ROOT = Path(__file__).parents[4]

PLAIN: dict[str, Any] = {
    "name": "inspect",
    "description": "Look at something.",
    "step": "What to look at.",
    "guidance": [{"text": "Look closer."}],
    "expert": {"prompt": "You look at things."},
}
"""The required parts of a definition."""


@pytest.fixture(scope="session")
def define() -> Callable[..., WorkflowDefinition]:
    """``define(result={…})``: a definition with the required parts and the passed ones."""
    return lambda **more: WorkflowDefinition.model_validate(PLAIN | more)


@dataclass
class Harness:
    """A client, the vendors of its daemon, and their requests."""

    client: MCPWebSocketClient
    simulator: Simulator
    close: Callable[[], Awaitable[None]]
    """Close the client, the daemon and its vendors before the test ends."""

    @property
    def request_count(self) -> int:
        """The number of requests that reached a vendor."""
        return len(self.simulator.log)

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last request."""
        return self.simulator.log[-1].body

    async def step(self, tool: str, step: str, **arguments: Any) -> dict[str, Any]:
        """The structured answer to one step."""
        result = await self.client.call(tool, {"step": step, **arguments}, timeout=60)
        assert isinstance(result.structured, dict)
        assert result.text
        return result.structured

    async def fail(self, tool: str, step: str, timeout: float = 60, **arguments: Any) -> CallError:
        """The error that a step ends with."""
        with pytest.raises(CallError) as caught:
            await self.client.call(tool, {"step": step, **arguments}, timeout=timeout)
        return caught.value


OpenHarness = Callable[..., Awaitable[Harness]]


@pytest.fixture
def open_harness(serve: Callable[..., Awaitable["Served"]]) -> OpenHarness:
    """``await open_harness(**environment)``: a daemon whose workspace is this repository; Kimi answers by default."""

    async def open_with(**env: str) -> Harness:
        served = await serve(ROOT, **{"TOOLD_DEFAULT_MODEL": "kimi-k3.1-pro", **env})
        return Harness(served.client, served.simulator, served.close)

    return open_with


@pytest.fixture
async def harness(open_harness: OpenHarness) -> Harness:
    """A daemon with the default settings."""
    return await open_harness()


@pytest.fixture(scope="session")
def saying() -> Callable[[dict[str, Any]], str]:
    """Returns the directive that makes the simulator answer with the passed object."""
    return lambda value: f"[[sim:json={json.dumps(value)}]]"
