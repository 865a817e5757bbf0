"""The choice of the vendor transport, and the error if none can be loaded."""

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from toold.protocol.error_codes import ServiceUnavailableError
from toold.providers import KIMI, CompletionRequest, Delta, Message, VendorAccess, VendorInfo, VendorProvider
from toold.providers.http_transport import HttpTransport
from toold.providers.kimi import kimi_body
from toold.providers.transport_loader import TransportChoice, TransportLoader

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


def _access(bench: "Bench") -> VendorAccess:
    return VendorAccess(api_key=SecretStr("sim-key"), base_url=bench.simulator.kimi_base_url, limit=1, simulated=True)


def _provider(bench: "Bench", *choices: TransportChoice) -> VendorProvider:
    return VendorProvider(TransportLoader(KIMI, _access(bench), choices), kimi_body)


def _broken(*_: Any) -> Any:
    raise ImportError("no such symbol")


async def test_broken_sdk_is_skipped(bench: "Bench") -> None:
    """If an installed SDK cannot be imported, the provider uses the next transport and reports which one it uses."""
    choices = (TransportChoice("openai", "openai", _broken), TransportChoice("httpx", "httpx", HttpTransport))
    provider = _provider(bench, *choices)
    assert provider.transport_name.startswith("openai ")
    await provider.warm_up()
    assert provider.transport_name.startswith("httpx ")
    deltas: list[Delta] = []
    asking = CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),))
    completion = await provider.complete(asking, timeout_s=30, on_delta=deltas.append)
    assert completion.text.startswith("Simulated answer")
    await provider.close()


async def test_transports_are_loaded_one_at_a_time(bench: "Bench") -> None:
    """Providers that warm up together import one after another, because concurrent imports of shared packages fail."""
    running = most = 0

    def importing(vendor: VendorInfo, access: VendorAccess) -> HttpTransport:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)  # long enough for another thread to enter if it could
        running -= 1
        return HttpTransport(vendor, access)

    choice = TransportChoice("httpx", "httpx", importing)
    providers = [_provider(bench, choice) for _ in range(3)]
    await asyncio.gather(*(provider.warm_up() for provider in providers))
    assert most == 1
    for provider in providers:
        await provider.close()


async def test_error_without_a_transport_names_the_package(bench: "Bench") -> None:
    """Warming up never raises. A request raises an error that names the package to install."""
    provider = _provider(bench, TransportChoice("no-sdk", "toold_no_such_sdk", _broken))
    assert provider.transport_name == "no-sdk (not installed)"
    await provider.warm_up()
    with pytest.raises(ServiceUnavailableError, match="needs the package no-sdk"):
        await provider.complete(CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),)), timeout_s=30)
    await provider.close()


async def test_unused_provider_can_be_closed(bench: "Bench") -> None:
    """Closing a provider that was never used succeeds."""
    await _provider(bench, TransportChoice("httpx", "httpx", HttpTransport)).close()
