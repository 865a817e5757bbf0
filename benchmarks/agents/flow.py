"""What all agents have in common: the prompt, the tools, and the turns of their model.

It imports nothing but the standard library, since each environment imports it.
"""

from typing import Any, Final

AGENTS: Final = 200
RUNS: Final = 100
"""Runs that begin at once."""
MODEL_S: Final = 1.0
"""What the model takes for each turn."""
MODEL: Final = "clerk"
INSTRUCTIONS: Final = (
    "You are the clerk of a shop. Find the order, check the stock of each of its items, add a note to the order for "
    "the warehouse, and then tell the customer in one sentence when it will arrive."
)
DESCRIPTION: Final = "Answers questions about orders."
ANSWER: Final = "Order {order} will arrive on Thursday; the warehouse knows."


def question(run: str) -> str:
    """The message to the agent; ``run`` identifies it, and is also the order's number."""
    return f"When will my order {run} arrive? I need it this week, and I have not had any message about it."


def wanted_calls(turn: int, run: str) -> list[tuple[str, dict[str, Any]]]:
    """The tool calls of the model's turn, from 0; none in the last."""
    turns: tuple[list[tuple[str, dict[str, Any]]], ...] = (
        [("find_order", {"order": run})],
        [("check_stock", {"order": run, "item": "lamp"}), ("check_stock", {"order": run, "item": "cable"})],
        [("add_note", {"order": run, "text": "The customer waits for it: send the lamp and the cable today."})],
    )
    return turns[turn] if turn < len(turns) else []


TURNS: Final = 4
CALLS: Final = 4
"""Tool calls of a run."""
NOTES: Final[dict[str, str]] = {}


async def find_order(order: str) -> dict[str, Any]:
    """Find an order by its number.

    Args:
        order: The number of the order.
    """
    return {"order": order, "items": ["lamp", "cable"], "state": "packed", "ordered": "Monday", "paid": True}


async def check_stock(order: str, item: str) -> dict[str, Any]:
    """Check how many pieces of an item of an order are in stock.

    Args:
        order: The number of the order.
        item: The name of the item.
    """
    return {"order": order, "item": item, "in_stock": len(item), "warehouse": "north"}


async def add_note(order: str, text: str) -> dict[str, Any]:
    """Add a note for the warehouse to an order.

    Args:
        order: The number of the order.
        text: The note.
    """
    NOTES[order] = text
    return {"order": order, "noted": True}


TOOLS: Final = (find_order, check_stock, add_note)
