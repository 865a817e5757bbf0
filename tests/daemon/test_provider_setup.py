"""Which providers there are with which settings, and what is said of those that are missing."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from toold.daemon.provider_setup import ConfiguredProviders, open_vendors
from toold.providers import CompletionRequest, Message, ModelCatalog
from toold.providers.simulator import Simulator

HTTP_ONLY = {"TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http"}


@pytest.fixture
async def vendors_with(settings_with: Any) -> AsyncIterator[Any]:
    """A function that opens the vendors of an environment; their providers are closed after the test."""
    async with AsyncExitStack() as stack:

        async def open_with(simulator: Simulator | None = None, **env: str) -> ConfiguredProviders:
            vendors = open_vendors(settings_with(**HTTP_ONLY | env), simulator)
            for provider in vendors.providers.values():
                stack.push_async_callback(provider.close)
            return vendors

        yield open_with


async def test_without_keys_no_vendor_is_available_and_both_keys_are_named(vendors_with: Any) -> None:
    """The message names the variable to set, and the simulator."""
    vendors = await vendors_with()
    assert (vendors.providers, vendors.limits) == ({}, {})
    assert set(vendors.absent) == {"kimi", "glm"}
    assert "KIMI_API_KEY" in vendors.absent["kimi"]
    assert "GLM_API_KEY" in vendors.absent["glm"]
    assert all("TOOLD_SIMULATE" in missing for missing in vendors.absent.values())


@pytest.mark.parametrize(
    ("variable", "vendor", "other"),
    [
        ("KIMI_API_KEY", "kimi", "glm"),
        ("MOONSHOT_API_KEY", "kimi", "glm"),
        ("GLM_API_KEY", "glm", "kimi"),
        ("ZHIPUAI_API_KEY", "glm", "kimi"),
    ],
)
async def test_a_key_enables_its_vendor(vendors_with: Any, variable: str, vendor: str, other: str) -> None:
    """Under each of its names; the other vendor stays missing."""
    vendors = await vendors_with(**{variable: "a-key"})
    assert set(vendors.providers) == set(vendors.limits) == {vendor}
    assert set(vendors.absent) == {other}
    assert not vendors.providers[vendor].simulated


async def test_each_vendor_has_the_limit_that_is_set(vendors_with: Any) -> None:
    """By default 6 and 4 at once, else what the operator says."""
    keys = {"KIMI_API_KEY": "a-key", "GLM_API_KEY": "a-key"}
    assert (await vendors_with(**keys)).limits == {"kimi": 6, "glm": 4}
    limited = await vendors_with(**keys, TOOLD_KIMI_CONCURRENCY="2", TOOLD_GLM_CONCURRENCY="1")
    assert limited.limits == {"kimi": 2, "glm": 1}


@pytest.mark.parametrize("keys", [{}, {"KIMI_API_KEY": "a-real-key", "GLM_API_KEY": "a-real-key"}])
async def test_the_simulator_answers_for_all_and_gets_no_real_key(vendors_with: Any, keys: dict[str, str]) -> None:
    """Both vendors are simulated even if keys are set, and all requests go to the simulator."""
    catalog = ModelCatalog.load()
    async with Simulator(catalog=catalog) as simulator:
        vendors = await vendors_with(simulator, **keys)
        assert vendors.absent == {}
        for name in ("kimi", "glm"):
            provider = vendors.providers[name]
            assert provider.simulated
            question = CompletionRequest(model=catalog.default(name), messages=(Message("user", "hello"),))
            assert "imulated" in (await provider.complete(question, timeout_s=20)).text
        assert [seen.vendor for seen in simulator.log] == ["kimi", "glm"]
        for provider in vendors.providers.values():
            await provider.close()
