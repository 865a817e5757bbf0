"""A daemon and the ``openai`` SDK's clients of it."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from toold.daemon.app import Daemon

from .openai_client import Connect, ConnectTo


@pytest.fixture
async def daemon(run_with: Any) -> Daemon:
    started: Daemon = await run_with()
    return started


@pytest.fixture
async def connect_to(run_with: Any) -> AsyncIterator[ConnectTo]:
    """``connect_to(daemon, token)``: the SDK's client of a daemon; closed before the daemon stops."""
    clients: list[AsyncOpenAI] = []

    def connect(daemon: Daemon, token: str | None = None, **options: Any) -> AsyncOpenAI:
        key = token or (daemon.settings.state_dir / "token").read_text().strip()
        http = DefaultAsyncHttpxClient(trust_env=False)
        base_url = f"http://127.0.0.1:{daemon.http.port}/v1"
        clients.append(AsyncOpenAI(api_key=key, base_url=base_url, http_client=http, max_retries=0, **options))
        return clients[-1]

    yield connect
    for client in clients:
        await client.close()


@pytest.fixture
def connect(daemon: Daemon, connect_to: ConnectTo) -> Connect:
    """``connect(token)``: the SDK's client of the daemon."""
    return partial(connect_to, daemon)


@pytest.fixture
def client(connect: Connect) -> AsyncOpenAI:
    return connect()
