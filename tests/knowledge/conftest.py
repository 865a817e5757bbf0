"""A daemon with collections, for all tests of a module."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from tests.simulated_daemon import TOKEN, simulated_environment
from tests.waiting import until
from toold.client import MCPWebSocketClient
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator

COLLECTIONS: Final = """
[knowledge.handbook]
description = "How the bakery works."
folder = "handbook"
refresh_s = 0.1

[knowledge.notes]
max_documents = 3

[toolsets.guest]
include = ["knowledge", "knowledge_list", "knowledge_add", "knowledge_notes"]

[agents.clerk]
description = "Answers from the handbook."
prompt = "Search first."
knowledge = ["handbook"]
"""
OVEN: Final = "# Ovens\n\nThe stone oven bakes at 260 degrees.\n\n## Cleaning\n\nBrush the ashes out on Fridays.\n"


@dataclass(frozen=True)
class Bakery:
    """The daemon, its client and its directory."""

    daemon: Daemon
    client: MCPWebSocketClient
    simulator: Simulator
    directory: Path

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The data of a call's answer."""
        result = await self.client.call(tool, arguments)
        data: dict[str, Any] = result.structured
        return data

    async def documents(self, query: str, **arguments: Any) -> list[str]:
        """The documents of the passages that ``knowledge`` finds."""
        answer = await self.call("knowledge", query=query, **arguments)
        return [passage["document"] for passage in answer["passages"]]

    def guest(self) -> MCPWebSocketClient:
        """A client of another principal, whose toolset has the notes and not the handbook."""
        tokens: list[str] = []

        def add(book: TokenBook) -> TokenBook:
            changed, token = book.with_new("guest", 1.0, toolsets=("guest",))
            tokens.append(token)
            return changed

        change_tokens(self.directory / "state", add)
        return MCPWebSocketClient(self.daemon.address().url, token=tokens[0], toolset="guest")

    async def is_read(self) -> bool:
        """Whether the handbook was read."""
        listed = await self.call("knowledge_list", collection="handbook")
        return bool(listed["collections"][0]["notes"] == [])

    async def is_embedded(self) -> bool:
        """Whether the handbook has all embeddings."""
        listed = await self.call("knowledge_list", collection="handbook")
        [handbook] = listed["collections"]
        return bool(handbook["notes"] == [] and handbook["embedded"] == handbook["documents"])

    async def gone(self, query: str) -> None:
        """Wait until nothing is found."""
        await until(lambda: self._empty(query))

    async def _empty(self, query: str) -> bool:
        return not await self.documents(query)

    async def finds(self, query: str, document: str) -> None:
        """Wait until the handbook's document is found."""
        await until(lambda: self._finds(query, document))

    async def _finds(self, query: str, document: str) -> bool:
        return document in await self.documents(query)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bakery(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bakery]:
    """A bakery with a handbook and notes."""
    directory = tmp_path_factory.mktemp("bakery")
    (directory / "toold.toml").write_text(COLLECTIONS)
    handbook = directory / "handbook"
    handbook.mkdir()
    (handbook / "ovens.md").write_text(OVEN)
    (handbook / "rye.html").write_text("<html><title>Rye</title><h1>Sour dough</h1><p>Feed it rye flour.</p></html>")
    async with Simulator() as simulator:
        settings = load_settings({}, env=simulated_environment(directory / "state", simulator), cwd=directory)
        async with running(settings) as daemon, MCPWebSocketClient(daemon.address().url, token=TOKEN) as client:
            made = Bakery(daemon, client, simulator, directory)
            await until(made.is_read)
            yield made
