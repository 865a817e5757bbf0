"""An approval at one node holds at all nodes: two processes, one PostgreSQL."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.e2e.conftest import Process

from .conftest import Nodes, open_client

pytestmark = pytest.mark.process
PROGRAM = Path(__file__).parents[2] / "sources" / "mcp" / "plain_program.py"


async def operate(node: Process, method: str, path: str, **query: str) -> Any:
    """The answer of the operator API."""
    url = f"http://127.0.0.1:{node.http_port}/operator{path}"
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        answer = await client.request(method, url, params=query, headers={"Authorization": f"Bearer {node.token}"})
    return answer.json()


async def waiting_at(node: Process, *names: str) -> list[dict[str, Any]]:
    """The versions that wait at a node, once they have these names."""
    async with asyncio.timeout(60):
        while True:
            versions: list[dict[str, Any]] = (await operate(node, "GET", "/sources/s/quarantined"))["quarantined"]
            if [version["name"] for version in versions] == list(names):
                return versions
            await asyncio.sleep(0.05)


async def ready(node: Process) -> None:
    async with asyncio.timeout(60):
        while (await operate(node, "GET", "/sources"))["sources"][0]["state"] != "ready":
            await asyncio.sleep(0.05)


async def call(node: Process, name: str) -> dict[str, Any]:
    peer = await open_client(node)
    answer = await peer.call(name, name)
    await peer.socket.close()
    return answer


async def test_an_approval_at_one_node_holds_at_all(nodes: Nodes, tmp_path: Path) -> None:
    """Also at a node that starts later. Until then, the new tool of the program waits at each node."""
    behaviour, config = tmp_path / "behaviour.json", tmp_path / "toold.toml"
    behaviour.write_text("{}")
    command = [sys.executable, "-S", str(PROGRAM), "--state", str(behaviour)]
    config.write_text(f'[sources.s]\ntype = "mcp"\ncommand = {json.dumps(command)}\n')
    a, b = [await nodes.start(name, TOOLD_CONFIG=str(config)) for name in ("a", "b")]
    await ready(a)
    await ready(b)
    behaviour.write_text('{"more": true}')
    for node in (a, b):
        os.kill(int((await call(node, "pid"))["outputs"][0]["text"]), signal.SIGKILL)
    (version,) = await waiting_at(a, "more")
    await waiting_at(b, "more")
    assert not (await call(b, "more"))["ok"]
    approved = await operate(a, "POST", "/sources/s/approve", tool="more", version=version["digest"])
    assert approved == {"approved": ["more"]}
    await waiting_at(b)
    assert (await call(b, "more"))["ok"]
    assert await asyncio.to_thread(b.stop) == 0
    b = await nodes.start("b", TOOLD_CONFIG=str(config))
    await ready(b)
    assert await waiting_at(b) == []
    assert (await call(b, "more"))["ok"]
