"""A daemon with hosted agents, and clients that speak A2A by plain HTTP."""

import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings import Settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

SETTINGS = """
[toolsets.small]
include = ["helper", "agent_decide"]

[agents.helper]
description = "Helps."
prompt = "You help."
tools = ["echo"]

[agents.extractor]
description = "Extracts."
prompt = "Extract."
answer_schema = { type = "object", properties = { city = { type = "string" } }, required = ["city"] }

[agents.careful]
description = "Asks before it writes."
prompt = "Write."
tools = ["echo"]
approve = ["echo"]
ask = true

[agents.painter]
description = "Looks at images."
execution_type = "sequential"
roles = [
    { name = "eye", prompt = "Describe.", model = "glm-4.6v", ask = true },
    { name = "pen", prompt = "Write.", model = "glm-4.7-flash" },
]

[agents.filer]
description = "Writes files."
prompt = "Write."
tools = ["execute_tool", "echo"]

[agents.brief]
description = "Answers briefly."
prompt = "Answer."
answer_as = "message"
ask = true

[agents.poet]
description = "Writes poems."
prompt = "Write."
public = true

[[agents.poet.skills]]
id = "haiku"
description = "Writes haiku."
tags = ["poem"]
examples = ["A haiku about rain"]

[[agents.poet.skills]]
id = "ode"
name = "Odes"
description = "Writes odes."
extended = true
"""


def message(text: str, message_id: str, **fields: Any) -> dict[str, Any]:
    return {"messageId": message_id, "role": "ROLE_USER", "parts": [{"text": text}], **fields}


@dataclass(frozen=True)
class A2AClient:
    """One principal's requests to one daemon."""

    http: httpx.AsyncClient
    token: str

    async def post(self, agent: str, body: Any, version: str = "1.0", **headers: str) -> httpx.Response:
        named = {"authorization": f"Bearer {self.token}", **headers}
        if version:
            named["A2A-Version"] = version
        return await self.http.post(f"/agents/{agent}/", json=body, headers=named)

    async def rpc(self, agent: str, method: str, params: Any, version: str = "1.0") -> dict[str, Any]:
        """The whole JSON-RPC answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await self.post(agent, body, version)
        assert answer.headers["content-type"] == "application/json"
        return dict(answer.json())

    async def ask(self, agent: str, sent: dict[str, Any], *, at_once: bool = False) -> dict[str, Any]:
        """The task of a message."""
        configuration = {"returnImmediately": at_once}
        answer = await self.rpc(agent, "SendMessage", {"message": sent, "configuration": configuration})
        return dict(answer["result"]["task"])

    @asynccontextmanager
    async def stream(
        self, agent: str, method: str, params: Any, version: str = "1.0", **headers: str
    ) -> AsyncIterator[httpx.Response]:
        """The answer to a streaming method."""
        named = {"authorization": f"Bearer {self.token}", "A2A-Version": version, **headers}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.http.stream("POST", f"/agents/{agent}/", json=body, headers=named) as answer:
            yield answer

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.http.get(path, headers={"authorization": f"Bearer {self.token}", **headers})


@dataclass(frozen=True)
class A2APort:
    """The HTTP port of a daemon with agents."""

    daemon: Daemon
    client: A2AClient
    """With the token of the local principal."""
    guest: A2AClient
    """With the token of another principal, whose toolset has one agent."""
    simulator: Simulator


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[A2APort]:
    """One daemon for all tests of a module."""
    directory = tmp_path_factory.mktemp("a2a")
    (directory / "toold.toml").write_text(SETTINGS)
    (directory / "state").mkdir(mode=0o700)
    guest = _guest_token(directory / "state")
    async with Simulator() as simulator:
        settings = load_settings({}, env=environment(directory, simulator), cwd=directory)
        async with served(settings) as (daemon, client):
            yield A2APort(daemon, client, A2AClient(client.http, guest), simulator)


@asynccontextmanager
async def served(settings: Settings) -> AsyncIterator[tuple[Daemon, A2AClient]]:
    """A daemon and the client of its local principal."""
    async with running(settings) as daemon:
        url = f"http://127.0.0.1:{daemon.http.port}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False) as http:
            yield daemon, A2AClient(http, TOKEN)


def environment(directory: Path, simulator: Simulator) -> dict[str, str]:
    return simulated_environment(directory / "state", simulator)


def _guest_token(state: Path) -> str:
    token = ""

    def add(book: TokenBook) -> TokenBook:
        nonlocal token
        book, token = book.with_new("guest", time.time(), toolsets=("small",))
        return book

    change_tokens(state, add)
    return token


Events = list[tuple[int, dict[str, Any]]]


async def events_of(answer: httpx.Response, *, limit: int = 1000) -> Events:
    """The first events of a stream, with their numbers."""
    assert answer.headers["content-type"] == "text/event-stream"
    events: Events = []
    number = 0
    async for line in answer.aiter_lines():
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            body = json.loads(line.removeprefix("data: "))
            events.append((number, body.get("result", body)))
            if len(events) == limit:
                break
    return events
