"""A daemon whose callers have credentials."""

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from toold.providers.simulator import Simulator
from toold.serving import HttpServer
from toold.store import KEY_BYTES, Retention, Store, open_sqlite_store

from .credential_world import LISTING, Systems, World, open_world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One daemon for all tests of a module."""
    systems = Systems()
    server = HttpServer(systems, "127.0.0.1", 0, "--api")
    await server.start()
    patch = pytest.MonkeyPatch()
    patch.setenv("HUB_LISTING", LISTING)
    try:
        async with Simulator() as simulator:
            opened = await open_world(tmp_path_factory.mktemp("credentials"), simulator, systems, server)
            yield opened
            await opened.close()
    finally:
        patch.undo()
        await server.close()


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[[], Store]:
    """A function that opens a store. The caller closes it."""
    return lambda: open_sqlite_store(
        tmp_path / "toold.db", content=json.dumps, retention=Retention(), key=b"k" * KEY_BYTES
    )
