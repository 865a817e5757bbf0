"""Which road is taken, and what happens where none can be."""

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


async def test_an_sdk_that_cannot_be_imported_is_passed_over(bench: "Bench") -> None:
    """An installed but broken SDK gives way to the next road, and the provider says which it took."""
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


async def test_roads_are_opened_one_at_a_time(bench: "Bench") -> None:
    """Two providers that warm up at once do not import at once: shared packages fail where their imports meet."""
    running = most = 0

    def importing(vendor: VendorInfo, access: VendorAccess) -> HttpTransport:
        nonlocal running, most
        running += 1
        most = max(most, running)
        time.sleep(0.01)  # long enough for the other thread to come, were it let in
        running -= 1
        return HttpTransport(vendor, access)

    choice = TransportChoice("httpx", "httpx", importing)
    providers = [_provider(bench, choice) for _ in range(3)]
    await asyncio.gather(*(provider.warm_up() for provider in providers))
    assert most == 1
    for provider in providers:
        await provider.close()


async def test_without_any_road_the_error_names_the_package(bench: "Bench") -> None:
    """Warming up never raises; asking says which package to install."""
    provider = _provider(bench, TransportChoice("no-sdk", "toold_no_such_sdk", _broken))
    assert provider.transport_name == "no-sdk (not installed)"
    await provider.warm_up()
    with pytest.raises(ServiceUnavailableError, match="needs the package no-sdk"):
        await provider.complete(CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),)), timeout_s=30)
    await provider.close()


async def test_a_provider_that_was_never_asked_closes(bench: "Bench") -> None:
    """Closing opens nothing."""
    await _provider(bench, TransportChoice("httpx", "httpx", HttpTransport)).close()
