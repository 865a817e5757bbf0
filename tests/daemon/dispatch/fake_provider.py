"""A vendor that runs a script."""

from collections.abc import Awaitable, Callable
from typing import Any

from toold.protocol.tool_call import Cost, Usage
from toold.providers import Completion, CompletionRequest, EmbeddingRequest, Embeddings, OnDelta

Script = Callable[[CompletionRequest, OnDelta | None], Awaitable[str]]


class FakeProvider:
    """A vendor that runs a script, and counts concurrent requests."""

    label = "Fake vendor"
    simulated = True
    transport_name = "a script"
    models: Any = None
    files: Any = None
    tokens: Any = None
    search: Any = None

    def preview(self, request: CompletionRequest, *, stream: bool = False) -> dict[str, Any]:
        return {"model": request.model.id}

    def __init__(self, name: str, script: Script) -> None:
        self.name = name
        self._script = script
        self.running = 0
        self.peak = 0
        self.request_count = 0

    async def complete(
        self, request: CompletionRequest, *, timeout_s: float, on_delta: OnDelta | None = None
    ) -> Completion:
        self.request_count += 1
        self.running += 1
        self.peak = max(self.peak, self.running)
        try:
            text = await self._script(request, on_delta)
        finally:
            self.running -= 1
        return Completion(text=text, model=request.model.id, finish_reason="stop", usage=Usage(3, 5))

    async def embed(self, request: EmbeddingRequest, *, timeout_s: float) -> Embeddings:
        self.request_count += 1
        return Embeddings(((1.0,),) * len(request.inputs), 1, request.model.id, Usage(3, 0), Cost(1.0, "USD"))

    async def warm_up(self) -> None:
        pass

    async def close(self) -> None:
        pass
