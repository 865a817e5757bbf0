"""A daemon with deployments, and clients of its platform API."""

import asyncio
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
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

ENDED = {"completed", "failed", "cancelled"}


@dataclass(frozen=True)
class PlatformClient:
    """One principal's requests to one daemon."""

    http: httpx.AsyncClient
    token: str

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return await self.http.request(method, f"/api/v1{path}", json=body, params=query, headers=headers)

    async def deploy(self, **body: Any) -> dict[str, Any]:
        """The fields of the job, once it has ended."""
        answer = await self.ask("POST", "/agents/deploy", body)
        assert answer.status_code == 202, answer.text
        return await self.ended(answer.json()["job_id"])

    async def ended(self, job_id: str) -> dict[str, Any]:
        while True:
            job: dict[str, Any] = (await self.ask("GET", f"/jobs/{job_id}")).json()
            if job["status"] in ENDED:
                return job
            await asyncio.sleep(0.02)


@dataclass(frozen=True)
class PlatformPort:
    """A running daemon."""

    daemon: Daemon
    client: PlatformClient
    """With the token of the local principal."""
    other: PlatformClient
    """With the token of another operator."""
    guest: PlatformClient
    """With the token of a principal without the operator right."""


def make_directory(directory: Path, settings: str) -> tuple[str, str]:
    """Prepares the files of a daemon; returns the tokens of another operator and of a guest."""
    (directory / "toold.toml").write_text(settings)
    (directory / "prompts").mkdir()
    (directory / "prompts" / "greeter.md").write_text("You greet people.")
    (directory / "state").mkdir(mode=0o700)
    tokens = []

    def add(book: TokenBook) -> TokenBook:
        for name in ("other", "guest"):
            book, token = book.with_new(name, time.time(), operator=name == "other")
            tokens.append(token)
        return book

    change_tokens(directory / "state", add)
    return tokens[0], tokens[1]


@asynccontextmanager
async def platform(directory: Path, simulator: Simulator, tokens: tuple[str, str]) -> AsyncIterator[PlatformPort]:
    """A daemon in this directory; it can be started again there."""
    environment = simulated_environment(directory / "state", simulator)
    async with running(load_settings({}, env=environment, cwd=directory)) as daemon:
        url = f"http://127.0.0.1:{daemon.http.port}"
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False) as http:
            clients = [PlatformClient(http, token) for token in (TOKEN, *tokens)]
            yield PlatformPort(daemon, *clients)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PlatformPort]:
    """One daemon for all tests of a module, with the target ``here``."""
    directory = tmp_path_factory.mktemp("platform")
    tokens = make_directory(directory, "[deploy]\npoll_s = 0.01\n")
    async with Simulator() as simulator, platform(directory, simulator, tokens) as started:
        yield started
