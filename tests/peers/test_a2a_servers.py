"""Agents of a2a-sdk, 1.x and 0.3, are sources: whole answers, streams, questions, failures and cancellation."""

import asyncio
import json
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.peers.conftest import PEERS, START_S, require
from tests.peers.test_peers import PROGRAMS
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import MCPWebSocketClient
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.daemon.transports.a2a.card_signer import CardSigner
from toold.protocol.error_codes import CallError
from toold.providers.simulator import Simulator

pytestmark = [pytest.mark.large_peer, pytest.mark.process]


@asynccontextmanager
async def calling(
    directory: Path, peer: str, program: str, *arguments: str, settings: str = ""
) -> AsyncIterator[MCPWebSocketClient]:
    """A client of a daemon whose source ``pelican`` is the agent of a program."""
    require(peer)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    (directory / "toold.toml").write_text(
        f'[sources.pelican]\ntype = "a2a"\nurl = "{url}"\nallow_private = true\n{settings}'
    )
    command = [str(PEERS / peer / "bin/python"), str(PROGRAMS / program), str(port), *arguments]
    with (directory / "agent.log").open("wb") as log:
        agent = subprocess.Popen(command, cwd=directory, stdout=log, stderr=log)
    try:
        await _answers(agent, url)
        async with Simulator() as simulator:
            environment = simulated_environment(directory / "state", simulator)
            async with running(load_settings({}, env=environment, cwd=directory)) as daemon:
                await daemon.sources.loaded()
                await daemon.publisher.published()
                async with MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
                    yield client
    finally:
        agent.kill()
        agent.wait(timeout=30)


async def _answers(agent: subprocess.Popen[bytes], url: str) -> None:
    async with asyncio.timeout(START_S), httpx.AsyncClient(trust_env=False) as http:
        while agent.poll() is None:
            try:
                await http.get(f"{url}/.well-known/agent-card.json")
            except httpx.TransportError:
                await asyncio.sleep(0.1)
            else:
                return
    pytest.fail("the agent ended at its start")


async def talk(client: MCPWebSocketClient) -> dict[str, Any]:
    pieces: list[str] = []
    answer = await client.call("pelican", {"prompt": "hello"}, on_chunk=pieces.append)
    paused = (await client.call("pelican", {"prompt": "ask"})).structured
    decision = {"id": "input-1", "decision": "answer", "text": "blue"}
    call_id = paused["call_id"]
    await client.call("agent_decide", {"call_id": call_id, "decisions": [decision]})
    while (await client.call("call_status", {"call_id": call_id})).structured["state"] != "done":
        await asyncio.sleep(0.05)
    decided = (await client.call("call_result", {"call_id": call_id})).structured["result"]
    errors = []
    for prompt, timeout_s in (("fail", None), ("wait", 2.0)):
        with pytest.raises(CallError) as failed:
            await client.call("pelican", {"prompt": prompt}, timeout=timeout_s)
        errors.append((str(failed.value.code), "No paper." in failed.value.message))
    return {
        "answer": answer.structured["answer"],
        "streamed": "".join(pieces),
        "asked": paused["requests"][0]["text"].rpartition(": ")[2],
        "decided": decided["answer"],
        "errors": errors,
    }


EXPECTED = {
    "answer": "You wrote hello",
    "streamed": "You wrote hello",
    "asked": "Which colour?",
    "decided": "You wrote blue",
    "errors": [("TOOL_EXECUTION_ERROR", True), ("TIMEOUT", False)],
}


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
async def test_a_server_of_sdk_1(binding: str, tmp_path: Path) -> None:
    """Its card, which it signed itself, is verified."""
    key = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    keys = json.loads(CardSigner(tmp_path / "key.pem").jwks)
    keys["keys"][0]["kid"] = "k1"
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    verify = 'verify = { file = "keys.json" }\n'
    async with calling(tmp_path, "a2a", "a2a_server_1_0.py", binding, "key.pem", settings=verify) as client:
        assert await talk(client) == EXPECTED


async def test_a_server_of_sdk_0_3(tmp_path: Path) -> None:
    """Over JSON-RPC."""
    async with calling(tmp_path, "a2a-0.3", "a2a_server_0_3.py") as client:
        assert await talk(client) == EXPECTED
