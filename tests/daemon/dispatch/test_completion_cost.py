"""What completions take, as values."""

import datetime as dt

from toold.daemon.dispatch import completion_cost
from toold.protocol.tool_call import Cost, ModelUsage, Usage
from toold.providers import ESTIMATE_ERROR, Completion, CompletionRequest, Message, Model, ModelPrice
from toold.tools import ANSWER_TOKENS

MODEL = Model(
    "kimi-k2", "kimi", 100_000, "https://example.com", dt.date(2026, 1, 1), price=ModelPrice("USD", 1.0, 10.0, 0.5)
)
REQUEST = CompletionRequest(MODEL, (Message("user", "word " * 1000),))


def test_what_the_vendor_counted_is_taken_as_it_is() -> None:
    """Under the catalog's name of the model."""
    usage, cost = Usage(7, 3), Cost(0.5, "USD")
    completion = Completion("hi", "kimi-k2-0905", "stop", usage, cost=cost)
    assert completion_cost.completed(REQUEST, completion, simulated=False) == ModelUsage(
        "kimi", "kimi-k2", 1, usage, cost
    )


def test_what_the_vendor_did_not_count_is_estimated_and_says_so() -> None:
    """Question, answer and reasoning, at the list price."""
    completion = Completion("word " * 100, "kimi-k2", "stop", None, reasoning="word " * 100)
    spent = completion_cost.completed(REQUEST, completion, simulated=False)
    assert spent.usage.estimated
    assert abs(spent.usage.input_tokens - 1000) <= 1000 * ESTIMATE_ERROR
    assert abs(spent.usage.output_tokens - 200) <= 200 * ESTIMATE_ERROR
    assert spent.cost is not None
    assert spent.cost.estimated
    assert spent.cost.amount == (spent.usage.input_tokens * 1.0 + spent.usage.output_tokens * 10.0) / 1e6


def test_what_was_cut_off_took_its_question_and_what_was_heard() -> None:
    """However much was heard."""
    nothing, much = (
        completion_cost.interrupted(REQUEST, heard, simulated=False).usage for heard in ("", "word " * 100_000)
    )
    assert (nothing.output_tokens, nothing.estimated) == (0, True)
    assert nothing.input_tokens == much.input_tokens
    assert abs(much.output_tokens - 100_000) <= 100_000 * ESTIMATE_ERROR


def test_what_is_simulated_costs_nothing() -> None:
    """In the model's currency."""
    completion = Completion("hi", "kimi-k2", "stop", Usage(7, 3), cost=Cost(0.5, "USD"))
    assert completion_cost.completed(REQUEST, completion, simulated=True).cost == Cost(0.0, "USD")


def test_a_completion_is_reckoned_by_its_question_and_the_bound_of_its_answer() -> None:
    """Or a usual answer, where it has no bound; a model without a price cannot be reckoned."""
    bounded = completion_cost.estimated_cost(CompletionRequest(MODEL, REQUEST.messages, max_tokens=10))
    usual = completion_cost.estimated_cost(REQUEST)
    assert bounded is not None
    assert usual is not None
    assert abs(usual.amount - bounded.amount - (ANSWER_TOKENS - 10) * 10 / 1e6) < 1e-9
    free = Model("glm", "glm", 1000, "https://example.com", dt.date(2026, 1, 1))
    assert completion_cost.estimated_cost(CompletionRequest(free, REQUEST.messages)) is None
