"""A simulator with invented models, and providers that reach it over every vendor transport."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr
from toold.providers import (
    Completion,
    CompletionRequest,
    Delta,
    Message,
    Model,
    ModelCatalog,
    VendorAccess,
    VendorProvider,
    build_glm,
    build_kimi,
)
from toold.providers.simulator import SIMULATOR_KEY, Simulator

MODELS = """
[[model]]
id = "kimi-plain"
provider = "kimi"
context_window = 1_000
source = "made up"
date = 2026-01-01
default = true
price = { currency = "USD", input = 1.0, cached_input = 0.5, output = 2.0 }

[[model]]
id = "kimi-full"
provider = "kimi"
context_window = 100_000
max_output = 1_000
inputs = ["text", "image"]
thinking = "switch"
web_search = true
structured = "schema"
capability_source = "made up"
source = "made up"
date = 2026-01-01

[[model]]
id = "kimi-deep"
provider = "kimi"
context_window = 100_000
thinking = "always"
efforts = ["low", "high", "max"]
capability_source = "made up"
source = "made up"
date = 2026-01-01

[[model]]
id = "kimi-hasty"
provider = "kimi"
context_window = 1_000
timeout_s = 0.2
source = "made up"
date = 2026-01-01

[[model]]
id = "glm-plain"
provider = "glm"
context_window = 1_000
source = "made up"
date = 2026-01-01
default = true
price = { currency = "USD", input = 1.0, cached_input = 0.5, output = 2.0 }

[[model]]
id = "glm-full"
provider = "glm"
context_window = 100_000
max_output = 1_000
inputs = ["text", "image"]
thinking = "switch"
web_search = true
structured = "object"
capability_source = "made up"
source = "made up"
date = 2026-01-01

[[model]]
id = "glm-deep"
provider = "glm"
context_window = 100_000
thinking = "always"
efforts = ["low", "high", "max"]
capability_source = "made up"
source = "made up"
date = 2026-01-01

[[model]]
id = "glm-vectors"
provider = "glm"
kind = "embedding"
context_window = 1_000
tools = false
source = "made up"
date = 2026-01-01
price = { currency = "CNY", input = 0.5, output = 0 }

[[model]]
id = "glm-hasty"
provider = "glm"
context_window = 1_000
timeout_s = 0.2
source = "made up"
date = 2026-01-01
"""

PATIENCE_S = 30.0
"""The limit of every wait. It is far longer than any wait takes, so that a test fails instead of hanging."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that call the real vendors, unless ``-m live`` selects them."""
    if "live" in config.option.markexpr:
        return
    live = [item for item in items if item.get_closest_marker("live")]
    if live:
        config.hook.pytest_deselected(items=live)
        items[:] = [item for item in items if item not in live]


ROUTES = [("kimi", "openai"), ("kimi", "http"), ("glm", "zhipuai"), ("glm", "zai"), ("glm", "http")]


@pytest.fixture(scope="module")
def catalog() -> ModelCatalog:
    return ModelCatalog.parse(MODELS)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def simulator(catalog: ModelCatalog) -> AsyncIterator[Simulator]:
    async with Simulator(catalog=catalog) as simulator:
        yield simulator


@dataclass
class Bench:
    """Opens providers to the simulator, and keeps them open for the module."""

    simulator: Simulator
    catalog: ModelCatalog
    opened: dict[Any, VendorProvider] = field(default_factory=dict)

    def model(self, vendor: str, kind: str = "plain") -> Model:
        return self.catalog.resolve(f"{vendor}-{kind}")

    async def until_in_flight(self, vendor: Any, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.simulator.until_in_flight(vendor, count)

    def open(
        self, vendor: str, sdk: Any, *, key: str = SIMULATOR_KEY, base_url: str | None = None, limit: int = 4
    ) -> VendorProvider:
        settings = (vendor, sdk, key, base_url, limit)
        if settings not in self.opened:
            url = self.simulator.kimi_base_url if vendor == "kimi" else self.simulator.glm_base_url
            access = VendorAccess(api_key=SecretStr(key), base_url=base_url or url, limit=limit, simulated=True)
            build: Any = build_kimi if vendor == "kimi" else build_glm
            self.opened[settings] = build(access, sdk=sdk)
        return self.opened[settings]


@pytest.fixture(autouse=True)
def no_plan_outlives_its_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """On a busy machine a request may end before it is sent; the next test must not get what was planned for it."""
    yield
    if "simulator" in request.fixturenames:
        request.getfixturevalue("simulator").forget_plans()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(simulator: Simulator, catalog: ModelCatalog) -> AsyncIterator[Bench]:
    bench = Bench(simulator, catalog)
    yield bench
    for provider in bench.opened.values():
        await provider.close()


@dataclass
class Asker:
    """Sends requests over one vendor transport, streamed or not, and keeps the pieces of the last streamed answer."""

    bench: Bench
    vendor: Any
    provider: VendorProvider
    streamed: bool
    deltas: list[Delta] = field(default_factory=list)

    async def ask(
        self, prompt: str | Message = "Hello.", *, timeout_s: float = 30.0, kind: str = "plain", **request: Any
    ) -> Completion:
        message = prompt if isinstance(prompt, Message) else Message("user", prompt)
        whole = CompletionRequest(
            **{"model": self.bench.model(self.vendor, kind), "messages": (message,), **request},
        )
        self.deltas = []
        on_delta = self.deltas.append if self.streamed else None
        return await self.provider.complete(whole, timeout_s=timeout_s, on_delta=on_delta)

    async def until_heard(self) -> None:
        """Wait for the first piece of a streamed answer."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.deltas:
                await asyncio.sleep(0.001)

    @property
    def sent(self) -> dict[str, Any]:
        """The body of the last request that the simulator received."""
        return self.bench.simulator.log[-1].body


@pytest.fixture(params=ROUTES, ids="-".join)
def route(request: pytest.FixtureRequest) -> tuple[str, str]:
    return request.param  # type: ignore[no-any-return] # pytest does not know the type of params


@pytest.fixture(params=[False, True], ids=["plain", "streamed"])
def asker(bench: Bench, route: tuple[str, str], request: pytest.FixtureRequest) -> Asker:
    return Asker(bench, route[0], bench.open(*route), request.param)


@pytest.fixture
def streamer(bench: Bench, route: tuple[str, str]) -> Asker:
    return Asker(bench, route[0], bench.open(*route), streamed=True)
