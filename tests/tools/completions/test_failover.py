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
from toold.tools.completions.failover import first_answer, select_fallbacks
from toold.tools.completions.model_selection import ModelChoice

if TYPE_CHECKING:
    from tests.tools.conftest import Context

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
    """The last model's error is raised, with the earlier ones in its details."""

    async def ask(choice: ModelChoice, _on_start: Callable[[], None] | None) -> str:
        raise ServiceUnavailableError(choice.model.id)

    with pytest.raises(ServiceUnavailableError, match=r"glm-4\.6") as failure:
        await first_answer([KIMI, GLM], ask, context)
    assert failure.value.details is not None
    assert [attempt["model"] for attempt in failure.value.details["fallback"]] == ["kimi-k2.6"]


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


def test_names_are_checked_before_anything_is_sent() -> None:
    """An unknown name and ``auto`` are errors of their item."""
    catalog = ModelCatalog.load()
    for name, says in (("glm-4.66", "did you mean"), ("auto", "Name the models")):
        with pytest.raises(InvalidArgumentsError, match=says) as failure:
            select_fallbacks(["glm-4.6", name], catalog.resolve)
        assert failure.value.details is not None
        assert list(failure.value.details["fields"]) == ["fallback.1"]


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
