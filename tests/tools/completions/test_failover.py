"""Failover: which errors let the next model answer, when, and what the answer says about it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    BudgetSpentError,
    CallError,
    CallTimeoutError,
    ContextLengthExceededError,
    InvalidArgumentsError,
    ProviderError,
    RateLimitedError,
    ServiceUnavailableError,
)
from toold.providers import ModelCatalog
from toold.testing import daemon_under_test
from toold.tools.builtin.chat import ChatArguments
from toold.tools.builtin.complete import CompleteArguments
from toold.tools.completions.failover import MAX_FALLBACKS, FailedAttempt, first_answer, select_models
from toold.tools.completions.model_selection import ModelChoice

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

KIMI, GLM = (ModelChoice(ModelCatalog.load().resolve(name)) for name in ("kimi-k2.6", "glm-4.6"))


Ask = Callable[[ModelChoice, Callable[[], None] | None], Awaitable[str]]


def failing_with(error: CallError, *, begun: bool = False) -> Ask:
    async def ask(choice: ModelChoice, on_start: Callable[[], None] | None) -> str:
        if choice.model is KIMI.model:
            if begun and on_start is not None:
                on_start()
            raise error
        return f"{choice.model.id}: {choice.reason}"

    return ask


@pytest.mark.parametrize("error", [ServiceUnavailableError, RateLimitedError, CallTimeoutError])
async def test_the_next_model_answers(context: "Context", error: type[CallError]) -> None:
    """After an outage, a used-up quota or a time-out; the reason names the model that failed and its error."""
    answer, failed = await first_answer([KIMI, GLM], failing_with(error("no")), context)
    assert answer == f"glm-4.6: fallback after kimi-k2.6 ({error.code.value})"
    assert [attempt.as_data() for attempt in failed] == [
        {"model": "kimi-k2.6", "code": error.code.value, "error": "no"}
    ]


@pytest.mark.parametrize("error", [ProviderError, BudgetSpentError, InvalidArgumentsError, ContextLengthExceededError])
async def test_a_refusal_is_not_evaded(context: "Context", error: type[CallError]) -> None:
    """A refused request and a spent budget end the call."""
    with pytest.raises(error):
        await first_answer([KIMI, GLM], failing_with(error("no")), context)


async def test_a_begun_answer_is_not_replaced(context: "Context") -> None:
    """Once something has arrived, a failure is the answer: two models never share one."""
    with pytest.raises(ServiceUnavailableError):
        await first_answer([KIMI, GLM], failing_with(ServiceUnavailableError("no"), begun=True), context)


async def test_all_fail(context: "Context") -> None:
    """The last model's error is raised, with the earlier ones in its details; each report has all failures so far."""

    async def ask(choice: ModelChoice, _on_start: Callable[[], None] | None) -> str:
        raise ServiceUnavailableError(choice.model.id)

    with pytest.raises(ServiceUnavailableError, match=r"glm-4\.6") as failure:
        await first_answer([KIMI, GLM], ask, context)
    assert failure.value.details is not None
    assert [attempt["model"] for attempt in failure.value.details["fallback"]] == ["kimi-k2.6"]
    first = "kimi-k2.6 failed (SERVICE_UNAVAILABLE)"
    assert context.reports == [first, f"{first}, glm-4.6 failed (SERVICE_UNAVAILABLE)"]


async def test_a_silent_model_gets_its_share_of_the_time(context: "Context", monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that sends nothing is given up for the next one; one that has begun keeps the rest of the time."""
    monkeypatch.setattr(context, "remaining", lambda: 0.02)
    begun = asyncio.Event()

    async def hang(choice: ModelChoice, on_start: Callable[[], None] | None) -> str:
        if choice.model is GLM.model:
            return "glm"
        if begun.is_set() and on_start is not None:
            on_start()
            await asyncio.sleep(0.1)  # longer than its share
            return "kimi"
        await asyncio.Event().wait()
        return ""

    answer, failed = await first_answer([KIMI, GLM], hang, context)
    assert (answer, failed[0].error.code.value) == ("glm", "TIMEOUT")
    begun.set()
    assert await first_answer([KIMI, GLM], hang, context) == ("kimi", ())


def selected(name: str) -> ModelChoice:
    return ModelChoice(ModelCatalog.load().resolve(name))


def test_names_of_a_call_are_checked_before_anything_is_sent() -> None:
    """An unknown name and ``auto`` are errors of their item."""
    for name, says in (("glm-4.66", "did you mean"), ("auto", "Name the models")):
        with pytest.raises(InvalidArgumentsError, match=says) as failure:
            select_models(KIMI, ["glm-4.6", name], (), selected)
        assert failure.value.details is not None
        assert list(failure.value.details["fields"]) == ["fallback.1"]
    for arguments in (ChatArguments, CompleteArguments):
        schema = arguments.model_json_schema()["properties"]["fallback"]
        assert schema["anyOf"][0]["maxItems"] == MAX_FALLBACKS


def test_the_call_precedes_the_operator_and_each_model_is_asked_once() -> None:
    """The operator's names count only if the call has none, and an empty list of the call turns them off."""
    assert select_models(KIMI, None, ["kimi-k2.6", "glm-4.6", "glm/glm-4.6"], selected) == [KIMI, GLM]
    assert select_models(KIMI, ["glm-4.6"], ["glm-5"], selected) == [KIMI, GLM]
    assert select_models(KIMI, [], ["glm-4.6"], selected) == [KIMI]


async def test_a_model_of_the_operator_that_cannot_answer_is_passed_over(context: "Context") -> None:
    """It makes no call invalid; if the models before it fail, the answer or the error says why it was not asked."""
    models = select_models(KIMI, None, ["glm-4.66", "glm-4.6"], selected)
    down = failing_with(ServiceUnavailableError("no"))
    answer, failed = await first_answer(models, down, context)
    assert answer == "glm-4.6: fallback after kimi-k2.6 (SERVICE_UNAVAILABLE), glm-4.66 (VALIDATION_ERROR)"
    assert [attempt.model for attempt in failed] == ["kimi-k2.6", "glm-4.66"]
    with pytest.raises(ServiceUnavailableError) as failure:
        await first_answer(models[:2], down, context)
    assert failure.value.details is not None
    assert [attempt["model"] for attempt in failure.value.details["fallback"]] == ["glm-4.66"]
    assert isinstance(models[1], FailedAttempt)


@pytest.mark.parametrize("tool", ["chat", "complete"])
async def test_a_call_with_fallback(tool: str) -> None:
    """Of a real call, the metadata and the data name the model that answered and why, and both requests are counted; a
    call without the argument fails.
    """
    prompts: dict[str, dict[str, Any]] = {
        "chat": {"prompt": "Why?"},
        "complete": {"messages": [{"role": "user", "content": "Why?"}]},
    }
    asked = {**prompts[tool], "model": "kimi-k2.6"}
    async with daemon_under_test() as daemon:
        daemon.simulator.plan("kimi", "chat", "status=503")
        answer = await daemon.client.call(tool, {**asked, "fallback": ["glm-4.6"]})
        assert (answer.metadata.provider, answer.metadata.model) == ("glm", "glm-4.6")
        assert answer.metadata.model_choice_reason == "fallback after kimi-k2.6 (SERVICE_UNAVAILABLE)"
        assert answer.structured["fallback"][0]["code"] == "SERVICE_UNAVAILABLE"
        assert answer.metadata.provider_calls == 2
        daemon.simulator.plan("kimi", "chat", "status=503")
        with pytest.raises(ServiceUnavailableError):
            await daemon.client.call(tool, asked)
