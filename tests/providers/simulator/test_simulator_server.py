"""The simulator's life cycle: its port and its shutdown."""

import asyncio
import contextlib
import socket

import httpx
import pytest
from toold.providers import ModelCatalog
from toold.providers.simulator import SIMULATOR_KEY, Simulator

HEADERS = {"authorization": f"Bearer {SIMULATOR_KEY}"}
HANG = {"model": "kimi-plain", "messages": [{"role": "user", "content": "[[sim:hang]]"}]}


async def test_hung_requests_end_with_the_simulator(catalog: ModelCatalog) -> None:
    """Leaving the block ends hung requests and frees the port."""
    async with httpx.AsyncClient(headers=HEADERS, trust_env=False, timeout=60, verify=False) as http:
        async with Simulator(catalog=catalog) as simulator:
            url = f"{simulator.kimi_base_url}/chat/completions"
            hung = asyncio.create_task(http.post(url, json=HANG))
            async with asyncio.timeout(30):
                await simulator.until_in_flight("kimi", 1)
        with contextlib.suppress(httpx.TransportError):  # a closed connection is accepted instead of a 500
            assert (await hung).status_code == 500
        with pytest.raises(httpx.ConnectError):
            await http.post(url, json=HANG)
        assert simulator.in_flight("kimi") == 0


async def test_occupied_port_is_an_error(catalog: ModelCatalog) -> None:
    """Entering the simulator raises an error that suggests another port."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="set another port with --port"),
    ):
        await Simulator(port=taken.getsockname()[1], catalog=catalog).__aenter__()


async def test_exit_without_enter_does_nothing(catalog: ModelCatalog) -> None:
    """Exiting a simulator that did not start has no effect, so that an exit stack can unwind it."""
    await Simulator(catalog=catalog).__aexit__()


async def test_default_simulator_has_the_shipped_models() -> None:
    """Without a catalog, the simulator lists the shipped models."""
    async with (
        Simulator() as simulator,
        httpx.AsyncClient(headers=HEADERS, trust_env=False, timeout=30, verify=False) as http,
    ):
        listed = (await http.get(f"{simulator.glm_base_url}/models")).json()["data"]
        assert {"glm-4.6", "glm-4.5-air"} <= {model["id"] for model in listed}
        assert "127.0.0.1" in simulator.kimi_base_url
