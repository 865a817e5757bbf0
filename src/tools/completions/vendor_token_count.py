"""The vendor's token count, used when the estimate is too inexact to decide what fits."""

from dataclasses import replace
from math import ceil
from typing import Final

from ...protocol.error_codes import CallError
from ...providers import ESTIMATE_ERROR, CompletionRequest, Model, TokenCount, TokenCounter
from ..model_question import ModelQuestion
from ..tool_context import ToolContext
from .context_window import PromptSizes, answer_tokens

COUNT_TIMEOUT_S: Final = 10.0
"""After this time the estimate is used instead."""


def needs_vendor_count(model: Model, question: ModelQuestion, sizes: PromptSizes) -> bool:
    """Whether the estimate is too inexact to decide if prompt and answer fit into the window."""
    if model.context_window is None:
        return False
    window = model.context_window - answer_tokens(model, question)
    return sizes.total * (1 - ESTIMATE_ERROR) <= window < sizes.total * (1 + ESTIMATE_ERROR)


def scaled_sizes(sizes: PromptSizes, tokens: int) -> PromptSizes:
    """Scales the estimated sizes so that they add up to the vendor's count."""
    factor = tokens / max(1, sizes.total)
    return replace(
        sizes,
        base=ceil(sizes.base * factor),
        files=tuple(ceil(file * factor) for file in sizes.files),
        turns=tuple(ceil(turn * factor) for turn in sizes.turns),
        counted=tokens,
    )


async def vendor_counted_sizes(request: CompletionRequest, sizes: PromptSizes, context: ToolContext) -> PromptSizes:
    """Returns the sizes scaled to the vendor's count of the whole ``request``, or unchanged if the count fails.

    Makes one request, which costs no tokens.
    """
    provider = request.model.provider
    try:
        tokens = context.capabilities(provider).tokens
        if tokens is None:
            return sizes
        count = await context.vendor(provider, _BoundedCount(tokens, request))
    except CallError:
        return sizes  # the completion itself reports the error
    return scaled_sizes(sizes, count.tokens)


class _BoundedCount:
    """A ``VendorOperation`` that counts within ``COUNT_TIMEOUT_S``."""

    def __init__(self, tokens: TokenCounter, request: CompletionRequest) -> None:
        self._tokens = tokens
        self._request = request

    async def __call__(self, *, timeout_s: float) -> TokenCount:
        return await self._tokens.count(self._request, timeout_s=min(timeout_s, COUNT_TIMEOUT_S))
