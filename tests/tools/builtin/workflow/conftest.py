"""A daemon with the real tools whose vendors are a simulator that counts what it is asked; and a definition to try."""

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
"""The least that a definition says."""


@pytest.fixture(scope="session")
def define() -> Callable[..., WorkflowDefinition]:
    """``define(result={…})``: a definition that says what it must, and this."""
    return lambda **more: WorkflowDefinition.model_validate(PLAIN | more)


@dataclass
class House:
    """A client, its daemon's vendors, and what they were asked."""

    client: MCPWebSocketClient
    simulator: Simulator
    close: Callable[[], Awaitable[None]]
    """End the client, the daemon and its vendors before the test does."""

    @property
    def asked(self) -> int:
        """How many requests reached a vendor."""
        return len(self.simulator.log)

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last of them."""
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


OpenHouse = Callable[..., Awaitable[House]]


@pytest.fixture
def open_house(serve: Callable[..., Awaitable["Served"]]) -> OpenHouse:
    """``await open_house(**environment)``: a daemon whose workspace is this repository."""

    async def open_with(**env: str) -> House:
        served = await serve(ROOT, **env)
        return House(served.client, served.simulator, served.close)

    return open_with


@pytest.fixture
async def house(open_house: OpenHouse) -> House:
    """A daemon as it ships."""
    return await open_house()


@pytest.fixture(scope="session")
def saying() -> Callable[[dict[str, Any]], str]:
    """What to write into a step so that the simulator answers with this object."""
    return lambda value: f"[[sim:json={json.dumps(value)}]]"
