"""The default model: the best value among the models of the available vendors. Pure.

The rule takes the cheapest model that has all required abilities. Callers get a more expensive model by naming it.
"""

from collections.abc import Iterable
from typing import Final

from .model import Model, ModelPrice

INPUT_TOKENS: Final = 10_000
"""The tokens of a prompt with some files. Models are compared by the price of this prompt and ``OUTPUT_TOKENS``."""
OUTPUT_TOKENS: Final = 1_000
MIN_WINDOW: Final = 128_000
"""The minimum window, the same as of the smaller current models. A conversation of ``conversation_tokens`` fits."""
MIN_ANSWER: Final = 16_384
"""The minimum ``max_output``: the longest answer that the tools expect, with some thinking."""


def best_value(models: Iterable[Model]) -> Model | None:
    """The cheapest model with all abilities that toold's tools need; None if there is none.

    It calls tools, can think, answers in JSON that its vendor enforces, has a window and an answer of a useful length,
    a known price, and no date of retirement. Among equally cheap models, a larger window wins, then the earlier entry.
    """
    capable = [model for model in models if _is_capable(model)]
    return min(capable, key=lambda model: (_typical_price(model), -(model.context_window or 0)), default=None)


def price_text(price: ModelPrice | None) -> str:
    """A price in a form for people."""
    if price is None:
        return "price unknown"
    if not price.input and not price.output:
        return "free"
    return f"{price.input:g} in, {price.output:g} out {price.currency} per million tokens"


def _is_capable(model: Model) -> bool:
    can_work = model.kind != "embedding" and model.tools and model.thinking != "none" and model.structured != "none"
    window = model.context_window or 0
    is_large = window >= MIN_WINDOW and (model.max_output or window) >= MIN_ANSWER
    return can_work and is_large and model.retired is None and model.price is not None


def _typical_price(model: Model) -> float:
    return float("inf") if model.price is None else model.price.dollars(INPUT_TOKENS, OUTPUT_TOKENS)
