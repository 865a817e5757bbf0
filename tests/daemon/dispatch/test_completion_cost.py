"""Usage and cost of completions, as values."""

import datetime as dt

from toold.daemon.dispatch import completion_cost
from toold.protocol.tool_call import Cost, ModelUsage, Usage
from toold.providers import ESTIMATE_ERROR, Completion, CompletionRequest, Message, Model, ModelPrice
from toold.tools import ANSWER_TOKENS

MODEL = Model(
    "kimi-k2", "kimi", 100_000, "https://example.com", dt.date(2026, 1, 1), price=ModelPrice("USD", 1.0, 10.0, 0.5)
)
REQUEST = CompletionRequest(MODEL, (Message("user", "word " * 1000),))


def test_the_vendors_count_is_used() -> None:
    """Under the catalog's name of the model."""
    usage, cost = Usage(7, 3), Cost(0.5, "USD")
    completion = Completion("hi", "kimi-k2-0905", "stop", usage, cost=cost)
    assert completion_cost.completed(REQUEST, completion, simulated=False) == ModelUsage(
        "kimi", "kimi-k2", 1, usage, cost
    )


def test_uncounted_usage_is_estimated() -> None:
    """Prompt, answer and reasoning, at the list price; marked as estimated."""
    completion = Completion("word " * 100, "kimi-k2", "stop", None, reasoning="word " * 100)
    spent = completion_cost.completed(REQUEST, completion, simulated=False)
    assert spent.usage.estimated
    assert abs(spent.usage.input_tokens - 1000) <= 1000 * ESTIMATE_ERROR
    assert abs(spent.usage.output_tokens - 200) <= 200 * ESTIMATE_ERROR
    assert spent.cost is not None
    assert spent.cost.estimated
    assert spent.cost.amount == (spent.usage.input_tokens * 1.0 + spent.usage.output_tokens * 10.0) / 1e6


def test_an_interrupted_completion_uses_its_prompt_and_the_received_text() -> None:
    """For any length of received text."""
    nothing, much = (
        completion_cost.interrupted(REQUEST, heard, simulated=False).usage for heard in ("", "word " * 100_000)
    )
    assert (nothing.output_tokens, nothing.estimated) == (0, True)
    assert nothing.input_tokens == much.input_tokens
    assert abs(much.output_tokens - 100_000) <= 100_000 * ESTIMATE_ERROR


def test_simulated_completions_cost_nothing() -> None:
    """In the model's currency."""
    completion = Completion("hi", "kimi-k2", "stop", Usage(7, 3), cost=Cost(0.5, "USD"))
    assert completion_cost.completed(REQUEST, completion, simulated=True).cost == Cost(0.0, "USD")


def test_the_estimate_uses_the_prompt_and_the_maximum_answer() -> None:
    """Or a typical answer without a maximum; a model without a price has no estimate."""
    bounded = MODEL.cost(completion_cost.expected_usage(CompletionRequest(MODEL, REQUEST.messages, max_tokens=10)))
    usual = MODEL.cost(completion_cost.expected_usage(REQUEST))
    assert bounded is not None
    assert usual is not None
    assert abs(usual.amount - bounded.amount - (ANSWER_TOKENS - 10) * 10 / 1e6) < 1e-9
    free = Model("glm", "glm", 1000, "https://example.com", dt.date(2026, 1, 1))
    assert free.cost(completion_cost.expected_usage(CompletionRequest(free, REQUEST.messages))) is None
