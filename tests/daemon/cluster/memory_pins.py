"""The pins that several nodes share, in memory, with the rules of the database."""

import asyncio
import itertools
from collections.abc import Callable, Mapping

from toold.store import PinNews, StoredPins


class MemoryPins:
    """What all nodes share."""

    def __init__(self) -> None:
        self.stored: dict[str, StoredPins] = {}
        self.nodes: list[NodePins] = []
        self.numbers = itertools.count(1)

    @property
    def revisions(self) -> dict[str, int]:
        return {name: stored.revision for name, stored in self.stored.items()}


class NodePins:
    """Implements ``SharedPinsPort`` for one node."""

    def __init__(self, shared: MemoryPins) -> None:
        self._shared = shared
        self.on_news: Callable[[PinNews, str], None] = lambda _, __: None
        shared.nodes.append(self)

    def start(self) -> None:
        pass

    async def read(self, name: str) -> StoredPins | None:
        await asyncio.sleep(0)
        return self._shared.stored.get(name)

    async def replace(self, name: str, content: bytes, revision: int | None) -> int | None:
        await asyncio.sleep(0)
        stored = self._shared.stored.get(name)
        if revision != (None if stored is None else stored.revision):
            return None
        new = next(self._shared.numbers)
        self._shared.stored[name] = StoredPins(content, new)
        self._notify("pins", name)
        return new

    async def revisions(self) -> Mapping[str, int]:
        await asyncio.sleep(0)
        return self._shared.revisions

    async def notify_listing(self, source: str) -> None:
        self._notify("listing", source)

    def _notify(self, news: PinNews, name: str) -> None:
        for node in self._shared.nodes:
            if node is not self:
                node.on_news(news, name)
