"""One question, one completion: what is sent, what is left out, and what of it the answer tells."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import ContextLengthExceededError, ProviderError, ServiceUnavailableError
from toold.providers import (
    AttachedFile,
    Completion,
    Delta,
    FunctionTool,
    JsonFormat,
    Message,
    SearchResult,
    ToolInvocation,
    WebSearch,
)
from toold.tools import Turn
from toold.tools.completions import ModelQuestion, ask
from toold.tools.completions.completion_loop import MAX_COMPLETIONS

if TYPE_CHECKING:
    from tests.tools.conftest import Context

SEARCH = ToolInvocation("s1", "$web_search", '{"query": "x"}')
LOOK = ToolInvocation("f1", "look", "{}")


def wants(*calls: ToolInvocation, text: str = "") -> Completion:
    """A model that wants tools called."""
    return Completion(text, "kimi-see", "tool_calls", None, tool_calls=calls, reasoning="hm")


class Script(dict[str, Any]):
    """What a model answers, one after the other; the last one for ever."""

    def __init__(self, *answers: Completion) -> None:
        super().__init__()
        self.answers = list(answers)

    def get(self, key: str, default: Any = None) -> Any:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_a_question_alone_is_one_completion(context: "Context") -> None:
    """The default model, and nothing that was not asked for."""
    asked = await ask(ModelQuestion("Why?"), context)
    assert [request.messages for request in context.asked] == [(Message("user", "Why?"),)]
    assert (asked.text, asked.model.id, asked.completions) == ("Hello.", "kimi-see", 1)
    assert (asked.model_choice_reason, asked.omitted, asked.notices) == (None, (), ())


async def test_everything_of_a_question_is_sent(context: "Context") -> None:
    """Instructions above, what was said before, then the question; the rest beside it."""
    tool = FunctionTool("look", "Look.", {"type": "object"})
    wanted = JsonFormat({"type": "object"}, "finding")
    question = ModelQuestion(
        "Why?", system="Be brief.", history=(Turn("user", "a"), Turn("assistant", "b")), tools=(tool,),
        web_search=True, response_format=wanted, temperature=0.5, max_tokens=9, cache_key="c",
    )  # fmt: skip
    await ask(question, context)
    (request,) = context.asked
    assert request.messages == (
        Message("system", "Be brief."), Message("user", "a"), Message("assistant", "b"), Message("user", "Why?"),
    )  # fmt: skip
    assert request.tools == (tool, WebSearch())
    assert request.response_format == wanted
    assert (request.temperature, request.max_tokens, request.cache_key) == (0.5, 9, "c")


async def test_what_does_not_fit_is_named_to_the_caller_and_to_the_model(context: "Context") -> None:
    """A file that the model is not given must not be taken for read."""
    files = (AttachedFile("a.txt", "word " * 3_000), AttachedFile("b.txt", "word " * 3_000))
    asked = await ask(ModelQuestion("Why?", model="small", files=files), context)
    (request,) = context.asked
    assert [file.name for file in request.files] == ["a.txt"]
    assert request.messages[-1].content == "Why?\n\n(Omitted for lack of space: b.txt.)"
    assert asked.data()["omitted"] == [
        {"what": "b.txt", "reason": "its 3,008 tokens do not fit into the model's context window"},
    ]


async def test_a_prompt_whose_files_all_do_not_fit_is_not_sent(context: "Context") -> None:
    files = (AttachedFile("a.txt", "word " * 9_000),)
    with pytest.raises(ContextLengthExceededError, match="larger window: kimi-see or glm-muse"):
        await ask(ModelQuestion("Why?", model="small", files=files), context)
    assert context.asked == []


async def test_without_a_provider_the_error_says_what_to_set(context: "Context") -> None:
    """For ``auto`` as for the default model."""
    context.daemon.available = []
    for model in ("auto", None):
        with pytest.raises(ServiceUnavailableError, match="KIMI_API_KEY"):
            await ask(ModelQuestion("Why?", model=model), context)


async def test_a_search_by_kimi_is_asked_again_until_it_answers(context: "Context") -> None:
    """Its built-in search wants its own call back, once a search; each is a completion, and they are counted."""
    context.replies = Script(wants(SEARCH), wants(SEARCH), Completion("Found.", "kimi-see", "stop", None))
    asked = await ask(ModelQuestion("Why?", web_search=True), context)
    assert len(context.asked) == asked.completions == asked.data()["completions"] == 3
    assert context.asked[1].messages == (
        Message("user", "Why?"),
        Message("assistant", "", tool_calls=(SEARCH,), reasoning="hm"),
        Message("tool", SEARCH.arguments, tool_call_id="s1", tool_name="$web_search"),
    )
    assert context.asked[2].messages[:3] == context.asked[1].messages
    assert asked.text == "Found."


async def test_a_search_without_end_is_ended(context: "Context") -> None:
    """No call pays for more completions than are stated."""
    context.replies = Script(wants(SEARCH))
    with pytest.raises(ProviderError, match=f"searched the web {MAX_COMPLETIONS} times"):
        await ask(ModelQuestion("Why?", web_search=True), context)
    assert len(context.asked) == MAX_COMPLETIONS


async def test_a_function_is_the_callers_to_call(context: "Context") -> None:
    """Nobody here answers for it: what the model asked for is handed on."""
    context.replies = Script(wants(SEARCH, LOOK))
    asked = await ask(ModelQuestion("Why?", tools=(FunctionTool("look", "Look.", {}),), web_search=True), context)
    assert asked.completion.tool_calls == (SEARCH, LOOK)
    assert len(context.asked) == 1


async def test_what_a_search_found_is_told(context: "Context") -> None:
    """GLM says which pages it read."""
    found = SearchResult("Page", "https://example.com/", "words", published="2026-01-01")
    context.completion = Completion("Hello.", "glm", "stop", None, search_results=(found,))
    asked = await ask(ModelQuestion("Why?"), context)
    assert asked.data()["search_results"] == [
        {"title": "Page", "link": "https://example.com/", "published": "2026-01-01"},
    ]


async def test_an_answer_can_be_kept_from_who_reads_along(context: "Context") -> None:
    """Several at once would be streamed into each other."""
    context.streaming, context.deltas = True, (Delta("Hel"), Delta("lo."))
    await ask(ModelQuestion("Why?"), context, stream=False)
    assert context.streamed == []
    await ask(ModelQuestion("Why?"), context)
    assert context.streamed == ["Hel", "lo."]
