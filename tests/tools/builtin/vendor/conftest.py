"""A daemon with the real tools, a separate workspace per test, and vendors that count their requests."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.client import CallResult, MCPWebSocketClient
from toold.protocol.error_codes import CallCancelledError, CallError, CallTimeoutError, ServiceUnavailableError
from toold.providers.simulator import Simulator

if TYPE_CHECKING:
    from tests.tools.conftest import Serve

PDF = b"%PDF-1.7\n\x00\xff"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@dataclass
class Harness:
    """A client, the vendors of its daemon, and its workspace directory."""

    client: MCPWebSocketClient
    simulator: Simulator
    directory: Path

    def write(self, name: str, content: str | bytes) -> str:
        """Write a file of the workspace and return its name."""
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    @property
    def request_counts(self) -> Counter[str]:
        """The number of requests per vendor and operation: ``kimi files``, ``glm search``, …

        Model lists are not counted, because the daemon requests them itself.
        """
        requests = (seen for seen in self.simulator.requests if seen.operation != "models")
        return Counter(f"{seen.vendor} {seen.operation}" for seen in requests)

    @property
    def last(self) -> dict[str, Any]:
        """The body of the last chat request."""
        return self.simulator.log[-1].body

    async def call(self, tool: str, /, **arguments: Any) -> CallResult:
        """The answer, after checking that its metadata counts the requests that the vendors received."""
        before = self.request_counts.total()
        # Far more time than the tools need: what is left decides how often an SDK may retry.
        result = await self.client.call(tool, arguments, timeout=600)
        assert result.metadata.provider_calls == self.request_counts.total() - before
        return result

    async def data(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """``structured`` of the answer."""
        data = (await self.call(tool, **arguments)).structured
        assert isinstance(data, dict)
        return data

    async def fail(self, tool: str, /, timeout: float = 60, **arguments: Any) -> CallError:
        """The error that a call ends with."""
        with pytest.raises(CallError) as caught:
            await self.client.call(tool, arguments, timeout=timeout)
        return caught.value

    async def refuse(self, tool: str, /, **arguments: Any) -> CallError:
        """The error of a call that fails before it sends a request to a vendor."""
        before = self.request_counts
        error = await self.fail(tool, **arguments)
        assert self.request_counts == before
        assert error.executed == "no"
        return error

    async def check_failures(self, vendor: str, operation: Any, tool: str, /, **arguments: Any) -> None:
        """Check that a vendor outage, a timeout and a cancel each cause one request and one error, and leave no request
        running.
        """
        kind = f"{vendor} {operation}"
        before = self.request_counts[kind]
        self.simulator.plan(vendor, operation, "status=503")
        assert isinstance(await self.fail(tool, **arguments), ServiceUnavailableError)
        assert self.request_counts[kind] == before + 1
        self.simulator.plan(vendor, operation, "hang")
        assert isinstance(await self.fail(tool, timeout=0.3, **arguments), CallTimeoutError)
        await self.simulator.until_in_flight(vendor, 0)
        before = self.request_counts[kind]
        self.simulator.plan(vendor, operation, "hang")
        call = asyncio.create_task(self.client.call(tool, arguments, timeout=60, request_id=kind + tool))
        async with asyncio.timeout(20):
            while self.request_counts[kind] == before:
                await asyncio.sleep(0.001)
        assert await self.client.cancel(kind + tool)
        with pytest.raises(CallCancelledError):
            await call
        await self.simulator.until_in_flight(vendor, 0)
        assert self.request_counts[kind] == before + 1


OpenHarness = Callable[..., Awaitable[Harness]]


@pytest.fixture
def open_harness(serve: "Serve", tmp_path: Path) -> OpenHarness:
    """``await open_harness(**environment)``."""

    async def open_with(**env: str) -> Harness:
        directory = tmp_path / "work"
        directory.mkdir()
        served = await serve(directory, **env)
        return Harness(served.client, served.simulator, directory)

    return open_with


@pytest.fixture
async def harness(open_harness: OpenHarness) -> Harness:
    """A daemon with the default settings."""
    return await open_harness()
