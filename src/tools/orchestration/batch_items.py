"""The items of a batch: as they are sent, or the rows of a result that is kept."""

from typing import Any, Final

from pydantic import Field

from ...protocol.error_codes import InvalidArgumentsError
from ...protocol.tool_call import Json
from ...shaping import ShapingError
from ..orchestration_context import OrchestrationContext
from ..tool import Arguments
from .pipeline_arguments import MAX_ITEMS
from .pipeline_planner import invalid
from .result_shaping import apply, plan_shaping

MAX_DETACHED_ITEMS: Final = 10_000


class RetainedItems(Arguments):
    """The rows of a result that is kept as a file."""

    handle: str = Field(description="From an answer with a file, as read_result takes it.")
    options: dict[str, Any] | None = Field(default=None, description="Made of the result first, as by read_result.")


async def items_of(items: list[Any] | RetainedItems, context: OrchestrationContext, *, detach: bool) -> list[Json]:
    """The items themselves.

    Raises:
        InvalidArgumentsError: they are none, too many, or no list.
        CallError: as ``context.read_result``.
    """
    rows = await _rows(items, context) if isinstance(items, RetainedItems) else items
    most = MAX_DETACHED_ITEMS if detach else MAX_ITEMS
    if not rows:
        raise invalid([("items", "should have one item at least")])
    if len(rows) > most:
        advice = "" if detach else f"; with detach it takes {MAX_DETACHED_ITEMS:,}"
        raise invalid([("items", f"should have at most {most:,} items, not {len(rows):,}{advice}")])
    return rows


async def _rows(items: RetainedItems, context: OrchestrationContext) -> list[Json]:
    shaping = plan_shaping(items.options, "items.options")
    value = await context.read_result(items.handle)
    try:
        shaped = await apply(shaping.plan, value)
    except ShapingError as error:
        raise invalid([("items.options", str(error))]) from error
    if shaped.rows is None or shaping.plan.return_mode != "inline":
        raise InvalidArgumentsError("items: what the handle has is no list; items.options.at names one within it.")
    return shaped.rows
