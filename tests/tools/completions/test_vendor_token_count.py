"""The vendor's token count is requested only if the error of the estimate matters."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import ContextLengthExceededError, ServiceUnavailableError
from toold.providers import ESTIMATE_ERROR, AttachedFile, CompletionRequest, TokenCount
from toold.tools.completions import ModelQuestion, ask
from toold.tools.completions.context_window import PromptSizes, answer_tokens
from toold.tools.completions.vendor_token_count import needs_vendor_count, scaled_sizes

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

SMALL = "kimi-small"  # a window of 8,000


class Counter:
    """A vendor's token counter that returns a fixed number, or fails."""

    def __init__(self, tokens: int | Exception) -> None:
        self.tokens = tokens
        self.base: list[CompletionRequest] = []

    async def count(self, request: CompletionRequest, *, timeout_s: float) -> TokenCount:
        self.base.append(request)
        assert timeout_s <= 10
        if isinstance(self.tokens, Exception):
            raise self.tokens
        return TokenCount(self.tokens, "vendor")


@pytest.fixture
def counts(context: "Context", monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a function that installs a vendor's token counter and returns it."""

    def as_said(tokens: int | Exception) -> Counter:
        counter = Counter(tokens)
        monkeypatch.setattr(context, "capabilities", lambda _: SimpleNamespace(tokens=counter))
        return counter

    return as_said


def question(words: int, **fields: Any) -> ModelQuestion:
    return ModelQuestion("word " * words, model=SMALL, max_tokens=1_000, **fields)


@pytest.mark.parametrize(
    ("words", "is_near"), [(100, False), (5_000, False), (6_000, True), (8_000, True), (12_000, False)]
)
def test_count_is_needed_only_near_the_window(context: "Context", words: int, is_near: bool) -> None:
    """A prompt that certainly fits, or certainly does not fit, needs no count."""
    model = context.daemon.catalog.resolve(SMALL)
    size = PromptSizes(words, (), ())
    assert model.context_window is not None
    window = model.context_window - answer_tokens(model, question(1))
    assert window == 7_000
    assert needs_vendor_count(model, question(1), size) == is_near
    assert is_near == (words * (1 - ESTIMATE_ERROR) <= window < words * (1 + ESTIMATE_ERROR))


def test_count_is_distributed_in_proportion_to_the_estimates() -> None:
    """The parts keep their estimated proportions, and their sum is the vendor's count."""
    size = scaled_sizes(PromptSizes(100, (200, 100), (100,)), 250)
    assert (size.base, size.files, size.turns, size.total) == (50, (100, 50), (50,), 250)


async def test_small_prompt_is_not_counted(context: "Context", counts: Any) -> None:
    """A prompt that certainly fits causes no count request."""
    counter = counts(1)
    answer = await ask(question(100), context)
    assert (counter.base, len(context.requests), answer.counted) == ([], 1, None)
    assert "counted_tokens" not in answer.data()


async def test_files_are_kept_if_the_vendors_count_fits(context: "Context", counts: Any) -> None:
    """By the estimate a file would be omitted. The answer reports the count."""
    files = (AttachedFile("a.txt", "word " * 3_000), AttachedFile("b.txt", "word " * 3_000))
    omitted = await ask(question(100, files=files), context)
    assert [part.what for part in omitted.omitted] == ["b.txt"]
    counter = counts(6_500)
    answer = await ask(question(100, files=files), context)
    assert (answer.omitted, answer.counted, answer.data()["counted_tokens"]) == ((), 6_500, 6_500)
    assert [len(request.files) for request in counter.base] == [2]
    assert len(context.requests[-1].files) == 2


async def test_too_long_error_has_the_vendors_count(context: "Context", counts: Any) -> None:
    """By the estimate the prompt would be sent. The error contains the vendor's count, and no model is called."""
    counts(9_000)
    with pytest.raises(ContextLengthExceededError, match="about 9,000 tokens") as raised:
        await ask(question(6_500), context)
    assert (raised.value.details or {})["estimated_tokens"] == 9_000
    assert context.requests == []


async def test_estimate_is_used_if_counting_fails(context: "Context", counts: Any) -> None:
    """If the vendor cannot count, the estimate is used and the request is sent."""
    counts(ServiceUnavailableError("down"))
    assert (await ask(question(6_500), context)).counted is None
    assert len(context.requests) == 1
