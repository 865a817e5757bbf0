"""Reads token usage and cost from a response, in the vendors' different forms. Pure."""

import math
from collections.abc import Mapping
from typing import Any

from ..protocol.tool_call import Cost, Usage
from .response_values import as_count, as_mapping


def read_usage(usage: Any) -> Usage | None:
    """Returns the token usage, or None if nothing was counted.

    Cached tokens are in the details, next to the details (Kimi), or named cache hits (DeepSeek). Tokens of the total
    that belong neither to the prompt nor to the answer are reasoning (xAI, Gemini).

    Raises:
        InvalidResponseError: the details are not objects.
    """
    if not isinstance(usage, Mapping) or ("prompt_tokens" not in usage and "completion_tokens" not in usage):
        return None
    prompt = as_mapping(usage.get("prompt_tokens_details") or {}, "usage.prompt_tokens_details")
    completion = as_mapping(usage.get("completion_tokens_details") or {}, "usage.completion_tokens_details")
    input_tokens, output_tokens = as_count(usage.get("prompt_tokens")), as_count(usage.get("completion_tokens"))
    reasoning = as_count(completion.get("reasoning_tokens"))
    beyond = as_count(usage.get("total_tokens")) - input_tokens - output_tokens
    if beyond > 0 and reasoning in {0, beyond}:
        reasoning = beyond
        output_tokens += beyond
    cached = prompt.get("cached_tokens") or usage.get("cached_tokens") or usage.get("prompt_cache_hit_tokens")
    return Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        reasoning_tokens=reasoning,
        cached_tokens=min(as_count(cached), input_tokens),
    )


def usage_of_chunk(chunk: Mapping[str, Any]) -> Usage | None:
    """Returns the usage of a chunk; Groq has it in a separate field."""
    own = chunk.get("x_groq")
    return read_usage(chunk.get("usage")) or (read_usage(own.get("usage")) if isinstance(own, Mapping) else None)


def dollars(amount: Any) -> Cost | None:
    """Returns a cost that a vendor states in dollars; None if it is not a number."""
    try:
        value = float(amount) if isinstance(amount, int | float | str) and not isinstance(amount, bool) else math.nan
    except ValueError:
        return None
    return Cost(round(value, 9), "USD") if math.isfinite(value) and value >= 0 else None
