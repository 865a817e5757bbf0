"""The notifications of nodes about pins, on a real database."""

import asyncio
from collections.abc import Callable

import pytest
from tests.store.postgres_databases import PostgresDatabase
from toold.store import PinNews, SharedPinsPort, Store

OpenNode = Callable[..., Store]

pytestmark = pytest.mark.process


class Node:
    """The pins of a node, and the notifications that it got."""

    def __init__(self, store: Store) -> None:
        assert store.cluster is not None
        self.pins: SharedPinsPort = store.cluster.pins
        self.news: list[tuple[PinNews, str]] = []
        self.pins.on_news = lambda news, name: self.news.append((news, name))
        self.pins.start()


async def test_other_nodes_are_notified_of_changes(open_node: OpenNode, postgres_database: PostgresDatabase) -> None:
    """Of pins, and of listings, unless a change is refused. The node that makes a change is not notified."""
    first, second = Node(open_node("a")), Node(open_node("b"))
    listening = "SELECT count(*) FROM pg_stat_activity WHERE query = 'LISTEN toold_pins'"
    async with asyncio.timeout(60):
        while postgres_database.sql(listening) != "2":
            await asyncio.sleep(0.05)
        revision = await first.pins.replace("crm.prompts", b"{}", None)
        assert await second.pins.replace("crm.prompts", b"[]", None) is None
        await second.pins.notify_listing("crm")
        await first.pins.replace("crm.prompts", b"{}", revision)
        while len(second.news) < 2 or not first.news:
            await asyncio.sleep(0.01)
    assert first.news == [("listing", "crm")]
    assert second.news == [("pins", "crm.prompts")] * 2


async def test_a_revision_is_greater_than_that_of_deleted_pins(
    open_node: OpenNode, postgres_database: PostgresDatabase
) -> None:
    """An operator may delete a row; nodes that know the pins before must see that others replaced them."""
    node = Node(open_node("a"))
    before = await node.pins.replace("crm", b"{}", None)
    postgres_database.sql("DELETE FROM source_pins")
    after = await node.pins.replace("crm", b"{}", None)
    assert before is not None
    assert after is not None
    assert after > before
    assert await node.pins.revisions() == {"crm": after}
