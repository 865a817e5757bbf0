"""A daemon that serves the registry at both places, and a client of each principal."""

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
registry_at_root = true

[registry]
serve = true
agents = "*"

[knowledge.manual]

[toolsets.small]
include = ["echo", "Answerer"]
"""


@dataclass(frozen=True)
class RegistryClient:
    """One principal's requests."""

    http: httpx.AsyncClient
    token: str | None

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token is not None:
            named["authorization"] = f"Bearer {self.token}"
        return await self.http.request(method, path, json=body, headers=named)

    async def ok(self, method: str, path: str, body: Any = None, **headers: str) -> dict[str, Any]:
        """The JSON of an answer with status 200."""
        answer = await self.ask(method, path, body, **headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def refused(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """The status and the detail of an error."""
        answer = await self.ask(method, path, body, **headers)
        assert set(answer.json()) == {"detail"}
        return answer.status_code, answer.json()["detail"]


@dataclass(frozen=True)
class RegistryPort:
    """The HTTP port of a daemon that serves the registry."""

    daemon: Daemon
    client: RegistryClient
    """With the token of the local principal, an operator."""
    guest: RegistryClient
    """With a named token without rights, whose toolset is ``small``."""
    editor: RegistryClient
    """As ``guest``, with the right to change the registry."""
    unknown: RegistryClient
    """Without a token."""
    simulator: Simulator


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RegistryPort]:
    """One daemon for all tests; each makes its own entries."""
    directory = tmp_path_factory.mktemp("registry")
    (directory / "toold.toml").write_text(SETTINGS)
    (directory / "state").mkdir(mode=0o700)
    tokens: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        for name in ("guest", "editor"):
            book, token = book.with_new(name, time.time(), toolsets=("small",), writes_registry=name == "editor")
            tokens.append(token)
        return book

    change_tokens(directory / "state", add)
    async with Simulator() as simulator:
        env = simulated_environment(directory / "state", simulator)
        async with running(load_settings({}, env=env, cwd=directory)) as daemon:
            url = f"http://127.0.0.1:{daemon.http.port}"
            async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, verify=False) as http:
                local, guest, editor, unknown = (RegistryClient(http, token) for token in (TOKEN, *tokens, None))
                yield RegistryPort(daemon, local, guest, editor, unknown, simulator)
