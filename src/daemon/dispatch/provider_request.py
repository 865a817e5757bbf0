"""One request to a model. Records whether it was sent, and the streamed part of a completion."""

from functools import partial

from ...providers import Completion, CompletionRequest, Delta, EmbeddingRequest, Embeddings, OnDelta, Provider
from .recording_ports import CompletionTrace


class ProviderRequest:
    """A completion in progress: whether it was sent, and the text that has been streamed so far."""

    __slots__ = ("_on_delta", "_pieces", "_provider", "_request", "_trace", "sent")

    def __init__(
        self, provider: Provider, request: CompletionRequest, on_delta: OnDelta | None, trace: CompletionTrace | None
    ) -> None:
        self._provider = provider
        self._request = request
        self._on_delta = on_delta
        self._trace = trace
        self._pieces: list[str] = []
        self.sent = False

    @property
    def received(self) -> str:
        """The characters streamed so far: text, reasoning and tool calls."""
        return "".join(self._pieces)

    async def __call__(self, *, timeout_s: float) -> Completion:
        self.sent = True
        on_delta = None if self._on_delta is None else partial(self._receive, self._on_delta)
        if self._trace is None:
            return await self._provider.complete(self._request, timeout_s=timeout_s, on_delta=on_delta)
        with self._trace:
            completion = await self._provider.complete(self._request, timeout_s=timeout_s, on_delta=on_delta)
            self._trace.completed(completion)
        return completion

    def _receive(self, on_delta: OnDelta, delta: Delta) -> None:
        self._pieces.append(delta.reasoning + delta.text)
        self._pieces.extend(piece.name + piece.arguments for piece in delta.tool_calls)
        on_delta(delta)


class ProviderEmbedding:
    """A request for embeddings in progress: whether it was sent."""

    __slots__ = ("_provider", "_request", "_trace", "sent")

    def __init__(self, provider: Provider, request: EmbeddingRequest, trace: CompletionTrace | None) -> None:
        self._provider = provider
        self._request = request
        self._trace = trace
        self.sent = False

    async def __call__(self, *, timeout_s: float) -> Embeddings:
        self.sent = True
        if self._trace is None:
            return await self._provider.embed(self._request, timeout_s=timeout_s)
        with self._trace:
            answer = await self._provider.embed(self._request, timeout_s=timeout_s)
            self._trace.completed(answer)
        return answer
