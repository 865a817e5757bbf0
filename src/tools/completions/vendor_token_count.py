"""The vendor's own count of a question's tokens, where the error of our estimate would decide what fits."""

from dataclasses import replace
from math import ceil
from typing import Final

from ...protocol.error_codes import CallError
from ...providers import ESTIMATE_ERROR, CompletionRequest, Model, TokenCount, TokenCounter
from ..tool_context import ToolContext
from .context_window import PromptSizes, answer_tokens
from .model_question import ModelQuestion

COUNT_TIMEOUT_S: Final = 10.0
"""A vendor that counts no faster is not waited for: the estimate does."""


def near(model: Model, question: ModelQuestion, size: PromptSizes) -> bool:
    """Whether the question may fit beside its answer, and may not, by the estimate and its error."""
    window = model.context_window - answer_tokens(model, question)
    return size.all * (1 - ESTIMATE_ERROR) <= window < size.all * (1 + ESTIMATE_ERROR)


def by_count(size: PromptSizes, tokens: int) -> PromptSizes:
    """The sizes as the vendor counted all of them; how they compare with one another is still our estimate."""
    share = tokens / max(1, size.all)
    return replace(
        size,
        asked=ceil(size.asked * share),
        files=tuple(ceil(file * share) for file in size.files),
        turns=tuple(ceil(turn * share) for turn in size.turns),
        counted=tokens,
    )


async def counted(request: CompletionRequest, size: PromptSizes, context: ToolContext) -> PromptSizes:
    """The sizes by the vendor's count, a request more that costs no tokens; where it cannot be had, as they are.

    ``request`` is the whole question.
    """
    provider = request.model.provider
    try:
        tokens = context.abilities(provider).tokens
        if tokens is None:
            return size
        count = await context.vendor(provider, _Counting(tokens, request))
    except CallError:
        return size  # what is wrong with vendor or question is told when it is asked
    return by_count(size, count.tokens)


class _Counting:
    """``Operation``: count, within the time that this is worth."""

    def __init__(self, tokens: TokenCounter, request: CompletionRequest) -> None:
        self._tokens = tokens
        self._request = request

    async def __call__(self, *, timeout_s: float) -> TokenCount:
        return await self._tokens.count(self._request, timeout_s=min(timeout_s, COUNT_TIMEOUT_S))
