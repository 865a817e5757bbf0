"""Publishing the catalog: in a thread, changes of one moment together, one catalog after another."""

import asyncio
import threading
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.daemon.dispatch.scripted_tools import make_tool
from toold.daemon.catalog_publisher import CatalogPublisher
from toold.tools import DEFAULT_TOOLSET, ToolBinder, ToolCatalog, ToolRegistry, shipped_toolsets


async def nothing(*_: Any) -> None: ...


class Catalogs:
    """The published catalogs, and the tools that the next one has."""

    def __init__(self) -> None:
        self.names = ["a"]
        self.made = 0
        self.may_make = threading.Event()
        self.may_make.set()
        self.published: list[ToolCatalog] = []

    def registry(self) -> ToolRegistry:
        return ToolRegistry([make_tool(name, nothing) for name in self.names])

    def make(self, registry: ToolRegistry) -> ToolCatalog:
        self.made += 1
        assert self.may_make.wait(60)
        if "broken" in registry:
            raise RuntimeError("broken")
        return ToolCatalog(registry, shipped_toolsets(), DEFAULT_TOOLSET)

    @property
    def shown(self) -> list[str]:
        return [tool.name for tool in self.published[-1].registry.tools]


@pytest.fixture
def catalogs() -> Catalogs:
    return Catalogs()


@pytest.fixture
async def publisher(catalogs: Catalogs) -> CatalogPublisher:
    publisher = CatalogPublisher(
        ToolBinder(()),
        registry=catalogs.registry,
        make_catalog=catalogs.make,
        current=lambda: catalogs.published[-1],
        replace=catalogs.published.append,
    )
    catalogs.published.append(publisher.first())
    return publisher


async def test_changes_of_one_moment_are_published_once(catalogs: Catalogs, publisher: CatalogPublisher) -> None:
    """However many changes come while a catalog is made, one more catalog has them all."""
    catalogs.may_make.clear()
    publisher.request()
    while catalogs.made < 2:
        await asyncio.sleep(0)
    for name in "bcdef":
        catalogs.names.append(name)
        publisher.request()
    catalogs.may_make.set()
    await publisher.published()
    assert catalogs.shown == list("abcdef")
    assert len(catalogs.published) == 3


async def test_the_event_loop_continues_while_a_catalog_is_made(
    catalogs: Catalogs, publisher: CatalogPublisher
) -> None:
    """A catalog is made in a thread; until it is done, the earlier one stays."""
    catalogs.may_make.clear()
    catalogs.names.append("b")
    publisher.request()
    waiting = asyncio.create_task(publisher.published())
    while catalogs.made < 2:
        await asyncio.sleep(0)
    assert (catalogs.shown, waiting.done()) == (["a"], False)
    catalogs.may_make.set()
    await waiting
    assert catalogs.shown == ["a", "b"]


async def test_views_in_use_are_made_in_the_thread(catalogs: Catalogs, publisher: CatalogPublisher) -> None:
    """The first client that asks after a change waits neither for its toolset's listing nor for its search index."""
    view = catalogs.published[-1].view(DEFAULT_TOOLSET)
    publisher.request()
    await publisher.published()
    assert catalogs.published[-1].used == (DEFAULT_TOOLSET,)
    assert not catalogs.published[-1].view(DEFAULT_TOOLSET).is_indexed
    assert len(catalogs.published[-1].view(DEFAULT_TOOLSET).index.tools) == len(view.tools)
    publisher.request()
    await publisher.published()
    assert catalogs.published[-1].view(DEFAULT_TOOLSET).is_indexed


async def test_a_failed_publication_leaves_the_earlier_catalog(catalogs: Catalogs, publisher: CatalogPublisher) -> None:
    """It is logged, and the next change is published."""
    catalogs.names.append("broken")
    publisher.request()
    with capture_logs() as lines:
        await publisher.published()
    assert [line["event"] for line in lines] == ["tools could not be published"]
    assert catalogs.shown == ["a"]
    catalogs.names.remove("broken")
    catalogs.names.append("b")
    publisher.request()
    await publisher.published()
    assert catalogs.shown == ["a", "b"]


async def test_nothing_is_published_after_closing(catalogs: Catalogs, publisher: CatalogPublisher) -> None:
    """A catalog that is being made at that moment is dropped."""
    catalogs.may_make.clear()
    publisher.request()
    while catalogs.made < 2:
        await asyncio.sleep(0)
    closing = asyncio.create_task(publisher.close())
    catalogs.may_make.set()
    await closing
    assert len(catalogs.published) == 1
