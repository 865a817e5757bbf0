"""The loop of completions that one question needs because of the vendor's built-in tools."""

from typing import TYPE_CHECKING

import pytest
from toold.protocol.error_codes import ProviderError
from toold.providers import Completion, CompletionRequest, Message, ToolInvocation, WebSearch
from toold.tools.completions import complete
from toold.tools.completions.completion_loop import MAX_COMPLETIONS

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

SEARCH = ToolInvocation("s-1", "$web_search", '{"query": "x"}')
LOOK = ToolInvocation("c-1", "look", "{}")


class Answers(dict[str, Completion | Exception]):
    """Returns one answer after another, and then always the last one."""

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


async def test_search_needs_one_more_completion(context: "Context") -> None:
    """The search call is sent back unchanged, and the result has the messages of the last completion."""
    context.replies = Answers(wants(SEARCH), context.completion)
    rounds = await complete(request(context), context)
    assert (rounds.completion.text, rounds.completions) == ("Hello.", 2)
    assert rounds.messages == context.requests[-1].messages
    assert rounds.messages == (
        Message("user", "Why?"),
        Message("assistant", "", (SEARCH,)),
        Message("tool", SEARCH.arguments, tool_call_id="s-1", tool_name="$web_search"),
    )


async def test_function_call_ends_the_loop(context: "Context") -> None:
    """A function call is returned to the caller, even if the model also requests a search."""
    context.replies = Answers(wants(SEARCH, LOOK))
    rounds = await complete(request(context), context)
    assert (rounds.completions, rounds.messages) == (1, (Message("user", "Why?"),))


async def test_endless_search_is_stopped(context: "Context") -> None:
    """After a bounded number of completions the call fails with executed ``yes``."""
    context.replies = Answers(wants(SEARCH))
    with pytest.raises(ProviderError, match=f"searched the web {MAX_COMPLETIONS} times") as caught:
        await complete(request(context), context)
    assert caught.value.executed == "yes"
    assert len(context.requests) == MAX_COMPLETIONS
