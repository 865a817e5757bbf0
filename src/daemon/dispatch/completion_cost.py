"""What completions take: as the vendor counted it, or by our own estimate. Pure."""

from typing import Final

from msgspec.structs import replace

from ...protocol.tool_call import Cost, ModelUsage, Usage
from ...providers import Completion, CompletionRequest, estimate_text
from ...tools import ANSWER_TOKENS, estimate_request

HEARD_CHARS: Final = 65_536
"""Of an answer that was cut off so much is counted; what is longer, by its length."""


def reckoned(request: CompletionRequest) -> Cost | None:
    """What a completion will cost, about: its question by the estimate, its answer by its bound or a usual length."""
    answer = ANSWER_TOKENS if request.max_tokens is None else request.max_tokens
    return request.model.cost(Usage(estimate_request(request), answer))


def answered(request: CompletionRequest, completion: Completion, *, simulated: bool) -> ModelUsage:
    """What a completion took. Where the vendor counted nothing it is estimated."""
    usage = completion.usage
    if usage is None:
        usage = _estimated(request, completion.reasoning + completion.text)
        return _spent(request, usage, request.model.cost(usage), simulated=simulated)
    return _spent(request, usage, completion.cost, simulated=simulated)


def cut_off(request: CompletionRequest, heard: str, *, simulated: bool) -> ModelUsage:
    """What a completion took that was sent and then given up: its question, and what had been heard of its answer."""
    usage = _estimated(request, heard)
    return _spent(request, usage, request.model.cost(usage), simulated=simulated)


def _estimated(request: CompletionRequest, answer: str) -> Usage:
    counted = estimate_text(answer[:HEARD_CHARS])
    if len(answer) > HEARD_CHARS:
        counted = round(counted * len(answer) / HEARD_CHARS)
    return Usage(estimate_request(request), counted, estimated=True)


def _spent(request: CompletionRequest, usage: Usage, cost: Cost | None, *, simulated: bool) -> ModelUsage:
    if cost is not None:
        # What is simulated costs nothing.
        cost = replace(cost, amount=0.0 if simulated else cost.amount, estimated=usage.estimated)
    return ModelUsage(request.model.provider, request.model.id, 1, usage, cost)
