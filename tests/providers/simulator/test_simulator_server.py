"""The simulator's life: a port of its own, and a prompt end."""

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
    """Leaving the block ends requests that would never be answered, and frees the port."""
    async with httpx.AsyncClient(headers=HEADERS, trust_env=False, timeout=60) as http:
        async with Simulator(catalog=catalog) as simulator:
            url = f"{simulator.kimi_base_url}/chat/completions"
            hung = asyncio.create_task(http.post(url, json=HANG))
            async with asyncio.timeout(30):
                await simulator.until_in_flight("kimi", 1)
        with contextlib.suppress(httpx.TransportError):  # as good as a 500: the connection is gone
            assert (await hung).status_code == 500
        with pytest.raises(httpx.ConnectError):
            await http.post(url, json=HANG)
        assert simulator.in_flight("kimi") == 0


async def test_a_port_that_is_taken_is_an_error(catalog: ModelCatalog) -> None:
    """The error says so at once, and nothing is left open."""
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="set another port with --port"),
    ):
        await Simulator(port=taken.getsockname()[1], catalog=catalog).__aenter__()


async def test_leaving_what_was_never_entered_does_nothing(catalog: ModelCatalog) -> None:
    """An exit stack may unwind a simulator that did not start."""
    await Simulator(catalog=catalog).__aexit__()


async def test_by_default_it_knows_the_shipped_models() -> None:
    """Every model of the catalog can be asked."""
    async with Simulator() as simulator, httpx.AsyncClient(headers=HEADERS, trust_env=False, timeout=30) as http:
        listed = (await http.get(f"{simulator.glm_base_url}/models")).json()["data"]
        assert {"glm-4.6", "glm-4.5-air"} <= {model["id"] for model in listed}
        assert "127.0.0.1" in simulator.kimi_base_url
