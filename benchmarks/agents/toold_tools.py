"""toold's tools for the agents: the functions of ``flow``. The benchmark registers them as a package's entry points."""

from typing import Any

from pydantic import Field
from toold.tools import Arguments, ToolContext, tool

from . import flow


class OrderArguments(Arguments):
    """An order."""

    order: str = Field(description="The number of the order.")


class StockArguments(OrderArguments):
    """An item of an order."""

    item: str = Field(description="The name of the item.")


class NoteArguments(OrderArguments):
    """A note on an order."""

    text: str = Field(description="The note.")


@tool("find_order", read_only=True, open_world=False)
async def find_order(arguments: OrderArguments, _context: ToolContext) -> dict[str, Any]:
    """Find an order by its number."""
    return await flow.find_order(arguments.order)


@tool("check_stock", read_only=True, open_world=False)
async def check_stock(arguments: StockArguments, _context: ToolContext) -> dict[str, Any]:
    """Check how many pieces of an item of an order are in stock."""
    return await flow.check_stock(arguments.order, arguments.item)


@tool("add_note", read_only=False, open_world=True)
async def add_note(arguments: NoteArguments, _context: ToolContext) -> dict[str, Any]:
    """Add a note for the warehouse to an order."""
    return await flow.add_note(arguments.order, arguments.text)
