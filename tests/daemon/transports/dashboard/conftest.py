"""A daemon with its dashboard, and browsers of two principals."""

import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.client import MCPWebSocketClient
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

_CSRF = re.compile(r'<meta name="csrf" content="([0-9a-f]{64})">')


@dataclass(frozen=True)
class Browser:
    """One browser: its cookies, and the headers that browsers send with actions."""

    http: httpx.AsyncClient

    async def sign_in(self, token: str, target: str = "") -> httpx.Response:
        return await self.http.post("/ui/sign-in", data={"token": token, "next": target})

    async def page(self, path: str) -> str:
        """The HTML of a page with status 200."""
        answer = await self.http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def csrf(self) -> str:
        found = _CSRF.search(await self.page("/ui/calls"))
        assert found is not None
        return found[1]

    async def send(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of a page with fields."""
        return await self.http.post(path, data={"csrf": await self.csrf(), **fields})

    async def act(self, path: str, **headers: str) -> httpx.Response:
        """Send a form of a page."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post(path, headers={"x-csrf-token": await self.csrf(), **named})


@asynccontextmanager
async def browser_of(daemon: Daemon) -> AsyncIterator[Browser]:
    """A browser that is signed in as the operator, by a link."""
    assert daemon.http_host.dashboard is not None
    url = f"http://127.0.0.1:{daemon.http.port}"
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as http:
        assert (await http.get(daemon.http_host.dashboard.sign_in_link())).status_code == 303
        yield Browser(http)


@dataclass(frozen=True)
class DashboardPort:
    """A running daemon."""

    daemon: Daemon
    url: str
    guest_token: str
    """Of a principal without the operator right."""
    lean_token: str
    """Of a principal that may use the toolset ``lean`` only."""

    def browser(self) -> Browser:
        """A browser that is not signed in."""
        return Browser(httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60))

    def caller(self, token: str = TOKEN) -> MCPWebSocketClient:
        return MCPWebSocketClient(self.daemon.address().url, token=token)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def port(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DashboardPort]:
    """One daemon for all tests."""
    state = tmp_path_factory.mktemp("dashboard") / "state"
    state.mkdir(mode=0o700)
    tokens: list[str] = []

    def add(book: TokenBook) -> TokenBook:
        for name, toolsets in (("guest", ()), ("lean", ("lean",))):
            book, token = book.with_new(name, time.time(), toolsets=toolsets)
            tokens.append(token)
        return book

    change_tokens(state, add)
    async with Simulator() as simulator:
        env = simulated_environment(state, simulator)
        async with running(load_settings({}, env=env, cwd=state.parent)) as daemon:
            yield DashboardPort(daemon, f"http://127.0.0.1:{daemon.http.port}", *tokens)


@pytest_asyncio.fixture(loop_scope="session")
async def browser(port: DashboardPort) -> AsyncIterator[Browser]:
    """Signed in as the operator, by a link: the tests together would exceed the limit of sign-in attempts."""
    assert port.daemon.http_host.dashboard is not None
    browser = port.browser()
    async with browser.http:
        assert (await browser.http.get(port.daemon.http_host.dashboard.sign_in_link())).status_code == 303
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def guest(port: DashboardPort) -> AsyncIterator[Browser]:
    """Signed in as a principal that sees its own calls."""
    browser = port.browser()
    async with browser.http:
        assert (await browser.sign_in(port.guest_token)).status_code == 303
        yield browser
