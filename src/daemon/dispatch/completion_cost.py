"""The usage and cost of completions and embeddings, as counted by the vendor or estimated here. Pure."""

from typing import Final

from msgspec.structs import replace

from ...protocol.tool_call import Cost, ModelUsage, Usage
from ...providers import Completion, CompletionRequest, EmbeddingRequest, Embeddings, Model, estimate_text
from ...tools import ANSWER_TOKENS, estimate_embeddings, estimate_request

COUNTED_CHARS: Final = 65_536
"""The characters of an interrupted answer whose tokens are counted; for longer answers, the count is extrapolated."""


def expected_usage(request: CompletionRequest) -> Usage:
    """The expected usage of a completion, with its maximum answer length or a typical one."""
    answer = ANSWER_TOKENS if request.max_tokens is None else request.max_tokens
    return Usage(estimate_request(request), answer)


def completed(request: CompletionRequest, completion: Completion, *, simulated: bool) -> ModelUsage:
    """The usage of a finished completion; estimated if the vendor counted nothing."""
    usage = completion.usage
    if usage is None:
        usage = _estimated(request, completion.reasoning + completion.text)
        return _model_usage(request.model, usage, request.model.cost(usage), simulated=simulated)
    return _model_usage(request.model, usage, completion.cost, simulated=simulated)


def interrupted(request: CompletionRequest, received: str, *, simulated: bool) -> ModelUsage:
    """The usage of a completion that was sent and then abandoned: its prompt, and the received part of the answer."""
    usage = _estimated(request, received)
    return _model_usage(request.model, usage, request.model.cost(usage), simulated=simulated)


def expected_tokens(request: EmbeddingRequest) -> Usage:
    """The expected usage of a request for embeddings, whose answer costs nothing."""
    return Usage(estimate_embeddings(request), 0)


def embedded(request: EmbeddingRequest, answer: Embeddings | None, *, simulated: bool) -> ModelUsage:
    """The usage of embeddings; estimated if the vendor counted nothing, or if the request was abandoned (None)."""
    if answer is not None and answer.usage is not None:
        return _model_usage(request.model, answer.usage, answer.cost, simulated=simulated)
    usage = replace(expected_tokens(request), estimated=True)
    return _model_usage(request.model, usage, request.model.cost(usage), simulated=simulated)


def _estimated(request: CompletionRequest, answer: str) -> Usage:
    tokens = estimate_text(answer[:COUNTED_CHARS])
    if len(answer) > COUNTED_CHARS:
        tokens = round(tokens * len(answer) / COUNTED_CHARS)
    return Usage(estimate_request(request), tokens, estimated=True)


def _model_usage(model: Model, usage: Usage, cost: Cost | None, *, simulated: bool) -> ModelUsage:
    if cost is not None:
        # Simulated requests cost nothing.
        cost = replace(cost, amount=0.0 if simulated else cost.amount, estimated=usage.estimated)
    return ModelUsage(model.provider, model.id, 1, usage, cost)
