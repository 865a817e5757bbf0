"""A vendor whose answers have a price."""

from typing import Any

from toold.protocol.tool_call import Cost, Usage
from toold.providers import Completion, CompletionRequest, Message, OnDelta

from .fake_provider import FakeProvider


async def once(request: CompletionRequest, on_delta: OnDelta | None) -> str:
    return "hi"


class PricedProvider(FakeProvider):
    """A vendor whose answers cost one dollar."""

    simulated = False

    def __init__(self, name: str) -> None:
        super().__init__(name, once)
        self.answers_simulated = False

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        return Completion(
            text="",
            model=f"{request.model.id}-0711",
            finish_reason="stop",
            usage=Usage(3, 5),
            cost=Cost(1.0, "USD"),
            simulated=self.answers_simulated,
        )


def question(context: Any, vendor: str) -> CompletionRequest:
    return CompletionRequest(model=context.daemon.catalog.default(vendor), messages=(Message("user", "x"),))
