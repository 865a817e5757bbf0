"""Completions that a vendor's own tools make of one question."""

from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import ProviderError
from toold.providers import Completion, CompletionRequest, Message, ToolInvocation, WebSearch
from toold.tools.completions import complete
from toold.tools.completions.completion_loop import MAX_COMPLETIONS

if TYPE_CHECKING:
    from tests.tools.conftest import Context

SEARCH = ToolInvocation("s-1", "$web_search", '{"query": "x"}')
LOOK = ToolInvocation("c-1", "look", "{}")


class Answers(dict[str, Completion | Exception]):
    """One after the other; the last one for ever."""

    def __init__(self, *answers: Completion) -> None:
        super().__init__()
        self._answers = list(answers)

    def get(self, key: str, default: object = None) -> Completion:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def request(context: "Context") -> CompletionRequest:
    model = context.daemon.catalog.resolve("kimi-see")
    return CompletionRequest(model, (Message("user", "Why?"),), tools=(WebSearch(),))


def wants(*calls: ToolInvocation) -> Completion:
    return Completion("", "kimi-see", "tool_calls", None, tool_calls=calls)


async def test_a_search_takes_a_completion_more(context: "Context") -> None:
    """Its call goes back as it came; the messages tell what the last completion was asked with."""
    context.replies = Answers(wants(SEARCH), context.completion)
    rounds = await complete(request(context), context)
    assert (rounds.completion.text, rounds.completions) == ("Hello.", 2)
    assert rounds.messages == context.asked[-1].messages
    assert rounds.messages == (
        Message("user", "Why?"),
        Message("assistant", "", (SEARCH,)),
        Message("tool", SEARCH.arguments, tool_call_id="s-1", tool_name="$web_search"),
    )


async def test_a_function_of_the_callers_ends_it(context: "Context") -> None:
    """Whoever offered it has to answer it, also where a search is wanted beside."""
    context.replies = Answers(wants(SEARCH, LOOK))
    rounds = await complete(request(context), context)
    assert (rounds.completions, rounds.messages) == (1, (Message("user", "Why?"),))


async def test_a_model_that_searches_for_ever_is_stopped(context: "Context") -> None:
    """After a bounded number of completions, which were all paid for."""
    context.replies = Answers(wants(SEARCH))
    with pytest.raises(ProviderError, match=f"searched the web {MAX_COMPLETIONS} times") as caught:
        await complete(request(context), context)
    assert caught.value.executed == "yes"
    assert len(context.asked) == MAX_COMPLETIONS
