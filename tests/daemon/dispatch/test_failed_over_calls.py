"""What a call records and pays that more than one model was asked for."""

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import Mock

import pytest
from toold.daemon.dispatch import ProviderLimiter
from toold.daemon.observability.call_recorder import CallRecorder
from toold.protocol.error_codes import CallError, CallTimeoutError, ServiceUnavailableError
from toold.providers import CompletionRequest, Delta, Message, ModelCatalog, OnDelta
from toold.tools.completions import ModelChoice, complete, first_answer

from .fake_provider import FakeProvider
from .priced_provider import PricedProvider

MODELS: Final = [ModelChoice(ModelCatalog.load().resolve(name)) for name in ("glm-4.6", "kimi-k2.6")]
BEGINNINGS: Final = [Delta("one"), Delta(reasoning="hm"), Delta()]


class FailingProvider(FakeProvider):
    """A vendor that sends ``begins``, if there is one, and then fails."""

    simulated = False

    def __init__(self, error: CallError, begins: Delta | None = None) -> None:
        async def fail(_request: CompletionRequest, on_delta: OnDelta | None) -> str:
            if begins is not None and on_delta is not None:
                on_delta(begins)
            raise error

        super().__init__("glm", fail)


async def _asks(arguments: Any, context: Any) -> str:
    async def attempt(choice: ModelChoice, on_start: Callable[[], None] | None) -> str:
        request = CompletionRequest(choice.model, (Message("user", "Why?"),), max_tokens=1000)
        done = await complete(request, context, model_choice_reason=choice.reason, on_start=on_start)
        return done.completion.text

    answer, _ = await first_answer(MODELS, attempt, context)
    return answer


@pytest.fixture
def failing(make_harness: Any, make_tool: Any) -> Any:
    """A function that makes a harness in which GLM fails so, and each answer of Kimi costs a dollar."""

    def make(error: CallError, begins: Delta | None = None) -> Any:
        tools = [make_tool("asks", _asks, open_world=True)]
        harness = make_harness(tools, providers={"kimi": (_never, 6), "glm": (_never, 6)})
        for name, vendor in (("glm", FailingProvider(error, begins)), ("kimi", PricedProvider("kimi"))):
            harness.limiters[name] = ProviderLimiter(vendor, 6, on_error=lambda *_: None)
            harness.providers[name] = vendor
        return harness

    return make


async def _never(_request: CompletionRequest, _on_delta: OnDelta | None) -> str:
    raise AssertionError("replaced")


async def test_the_audit_row_has_the_answering_model_and_the_usage_of_all(failing: Any) -> None:
    """An attempt that timed out counts with its prompt's tokens at its model's price, in the row and in the budget."""
    harness = failing(CallTimeoutError("too slow"))
    harness.budget.amounts = {"USD": 5.0}
    result = await harness.call(harness.session(), 1, "asks")
    assert result.metadata.model_choice_reason == "fallback after glm-4.6 (TIMEOUT)"
    prompt, answered = result.metadata.usage_by_model
    assert (prompt.provider, prompt.model, prompt.usage.output_tokens) == ("glm", "glm-4.6", 0)
    assert (answered.provider, answered.cost.amount) == ("kimi", 1.0)
    (ended,) = harness.recorder.ended_calls
    row = CallRecorder(Mock(), Mock(), "shape", None).row(*ended)
    assert row.message == "fallback after glm-4.6 (TIMEOUT)"
    assert (row.outcome, row.provider, row.model) == ("ok", "kimi", "kimi-k2.6-0711")
    assert row.input_tokens == prompt.usage.input_tokens + 3
    assert row.output_tokens == 5
    assert row.cost_currency == "USD"
    assert row.cost_amount == pytest.approx(1.0 + prompt.usage.input_tokens * 0.6 / 1e6)
    assert harness.budget.state()["spent"]["USD"] == pytest.approx(row.cost_amount)


async def test_a_fallback_over_the_budget_is_not_sent(failing: Any) -> None:
    """Each attempt is checked: the first is sent, the second refused, and the error has the first one's failure."""
    harness = failing(ServiceUnavailableError("down"))
    harness.budget.amounts = {"USD": 0.003}  # 1,000 tokens of an answer cost 0.0022 at GLM and 0.004 at Kimi
    refused = await harness.call(harness.session(), 1, "asks")
    assert (refused.error.code, refused.error.executed) == ("RATE_LIMITED", "no")
    assert refused.error.details["fallback"][0]["model"] == "glm-4.6"
    assert [harness.limiters[name].asked.is_set() for name in ("glm", "kimi")] == [True, False]


@pytest.mark.parametrize("begins", BEGINNINGS, ids=["text", "reasoning", "an incomplete tool call"])
async def test_a_stream_that_has_begun_is_not_continued_by_another_model(failing: Any, begins: Delta) -> None:
    """The call fails with the vendor's error, and the other model is not asked."""
    harness = failing(ServiceUnavailableError("broke off"), begins)
    result = await harness.call(harness.session(streaming=True), 1, "asks")
    assert (result.error.code, result.error.message) == ("SERVICE_UNAVAILABLE", "broke off")
    assert [harness.limiters[name].asked.is_set() for name in ("glm", "kimi")] == [True, False]
