"""Meters one call: time, completions, tokens and cost."""

import msgspec

from ...protocol.tool_call import Cost, ModelUsage, Usage


class UsageMeter(msgspec.Struct):
    """The usage of one call so far. Dispatch and the tool's context add to it; it is read once, at the end."""

    queue_s: float = 0.0
    tool_s: float = 0.0
    provider_s: float = 0.0
    provider_calls: int = 0
    """Requests sent to a vendor."""
    provider: str | None = None
    model: str | None = None
    model_choice_reason: str | None = None
    by_model: dict[tuple[str, str], ModelUsage] | None = None
    """Usage of the completions by provider and model; None without completions."""
    simulated: bool = False

    def add_usage(self, usage: ModelUsage) -> None:
        """Add the usage of one completion."""
        by_model = self.by_model = self.by_model or {}
        key = usage.provider, usage.model
        by_model[key] = by_model[key] + usage if key in by_model else usage

    @property
    def usage_by_model(self) -> tuple[ModelUsage, ...]:
        """The usage of all completions, one entry per model."""
        return tuple(self.by_model.values()) if self.by_model else ()

    def add(self, other: "UsageMeter") -> None:
        """Add the vendor usage of another call."""
        self.provider_s += other.provider_s
        self.provider_calls += other.provider_calls
        if other.provider is not None:
            self.provider, self.model, self.model_choice_reason = other.provider, other.model, other.model_choice_reason
        for usage in other.usage_by_model:
            self.add_usage(usage)
        self.simulated = self.simulated or other.simulated

    @property
    def usage(self) -> Usage | None:
        """The tokens of all completions."""
        parts = self.usage_by_model
        return sum((part.usage for part in parts[1:]), parts[0].usage) if parts else None

    @property
    def cost(self) -> Cost | None:
        """The total cost; None if no completion has a price, or if the currencies differ."""
        costs = [part.cost for part in self.usage_by_model if part.cost is not None]
        if len({cost.currency for cost in costs}) != 1:
            return None
        amount = round(sum(cost.amount for cost in costs), 8)
        return Cost(amount, costs[0].currency, any(cost.estimated for cost in costs))
