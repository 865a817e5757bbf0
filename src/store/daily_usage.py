"""The spending at vendors, by day."""

import datetime as dt
from collections.abc import Iterable

import msgspec

from ..protocol.tool_call import ModelUsage
from .store_limits import MAX_COUNT
from .store_rows import CallRow


class DailyUsage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The spending of one principal, tool, agent and model on one day. Its fields are the columns of ``day_spent``."""

    day: str
    """``YYYY-MM-DD`` in UTC; a call belongs to the day on which it ended."""
    principal: str
    tool: str
    agent: str = ""
    """The outermost agent whose run includes the call; empty without an agent, or if the day is older than this column.
    """
    provider: str
    model: str
    """The catalog's id."""
    simulated: bool
    currency: str
    """Empty if the model has no known price."""
    completions: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """Part of ``input_tokens``."""
    cost: float
    estimated: int
    """The number of calls with an estimated token count."""


def day_of(at: float) -> str:
    """Returns the day in UTC of a Unix time."""
    return dt.datetime.fromtimestamp(at, dt.UTC).date().isoformat()


def by_day(row: CallRow, usage_by_model: Iterable[ModelUsage], at: float, agent: str = "") -> list[DailyUsage]:
    """Returns the usage that a call, ended at Unix time ``at``, adds to the sums, by model. ``agent``:
    ``CallEnd.agent``."""
    return [
        DailyUsage(
            day=day_of(at),
            principal=row.principal,
            tool=row.tool,
            agent=agent,
            provider=part.provider,
            model=part.model,
            simulated=row.simulated,
            currency=part.cost.currency if part.cost else "",
            completions=part.completions,
            input_tokens=min(part.usage.input_tokens, MAX_COUNT),
            output_tokens=min(part.usage.output_tokens, MAX_COUNT),
            cached_tokens=min(part.usage.cached_tokens, MAX_COUNT),
            cost=part.cost.amount if part.cost else 0.0,
            estimated=int(part.usage.estimated),
        )
        for part in usage_by_model
    ]
