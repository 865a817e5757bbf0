"""A daemon with two principals, and a client of its REST API for each."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

SETTINGS = """
[toolsets.small]
include = ["echo"]
"""


@dataclass(frozen=True)
class RestClient:
    """One principal's requests."""

    http: httpx.AsyncClient
    token: str | None

    async def post(self, path: str, body: Any = None, **headers: str) -> httpx.Response:
        content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {"content-type": "application/json"} if body is not None else {}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            named["authorization"] = f"Bearer {self.token}"
        return await self.http.post(path, content=content, headers=named)

    async def document(self, path: str = "/openapi.json") -> dict[str, Any]:
        answer = await self.http.get(path, headers={"authorization": f"Bearer {self.token}"})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@dataclass(frozen=True)
class RestDaemon:
    """A daemon and its clients."""

    daemon: Daemon
    client: RestClient
    """With the token of the local principal."""
    guest: RestClient
    """With a named token, whose toolset is ``small``."""
    unknown: RestClient
    """Without a token."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def rest(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RestDaemon]:
    """One daemon for all tests."""
    directory = tmp_path_factory.mktemp("rest")
    (directory / "toold.toml").write_text(SETTINGS)
    (directory / "state").mkdir(mode=0o700)
    tokens: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        book, token = book.with_new("guest", time.time(), toolsets=("small",))
        tokens.append(token)
        return book

    change_tokens(directory / "state", add)
    async with Simulator() as simulator:
        env = simulated_environment(directory / "state", simulator)
        async with running(load_settings({}, env=env, cwd=directory)) as daemon:
            url = f"http://127.0.0.1:{daemon.http.port}"
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
                yield RestDaemon(daemon, *(RestClient(http, token) for token in (TOKEN, tokens[0], None)))
