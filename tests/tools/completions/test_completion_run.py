"""One question and its completion: what is sent, what is omitted, and what the answer reports."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import ContextLengthExceededError, ProviderError, ServiceUnavailableError
from toold.providers import (
    AttachedFile,
    Completion,
    Delta,
    FunctionTool,
    JsonFormat,
    ListedModel,
    Message,
    OpenProvider,
    SearchResult,
    ToolInvocation,
    VendorObjectNotFoundError,
    WebSearch,
)
from toold.tools import Turn
from toold.tools.completions import ModelQuestion, ask
from toold.tools.completions.completion_loop import MAX_COMPLETIONS

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

SEARCH = ToolInvocation("s1", "$web_search", '{"query": "x"}')
LOOK = ToolInvocation("f1", "look", "{}")


def wants(*calls: ToolInvocation, text: str = "") -> Completion:
    """A completion that requests tool calls."""
    return Completion(text, "kimi-see", "tool_calls", None, tool_calls=calls, reasoning="hm")


class Script(dict[str, Any]):
    """Returns one answer after another, and then always the last one."""

    def __init__(self, *answers: Completion) -> None:
        super().__init__()
        self.answers = list(answers)

    def get(self, key: str, default: Any = None) -> Any:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


async def test_plain_question_is_one_completion(context: "Context") -> None:
    """A question without options is one request to the default model."""
    answer = await ask(ModelQuestion("Why?"), context)
    assert [request.messages for request in context.requests] == [(Message("user", "Why?"),)]
    assert (answer.text, answer.model.id, answer.completions) == ("Hello.", "kimi-see", 1)
    assert (answer.model_choice_reason, answer.omitted, answer.notices) == (None, (), ())


async def test_all_fields_of_a_question_are_sent(context: "Context") -> None:
    """The messages are system message, history and question. All other fields are part of the request."""
    tool = FunctionTool("look", "Look.", {"type": "object"})
    wanted = JsonFormat({"type": "object"}, "finding")
    question = ModelQuestion(
        "Why?", system="Be brief.", history=(Turn("user", "a"), Turn("assistant", "b")), tools=(tool,),
        web_search=True, response_format=wanted, temperature=0.5, max_tokens=9, cache_key="c",
    )  # fmt: skip
    await ask(question, context)
    (request,) = context.requests
    assert request.messages == (
        Message("system", "Be brief."), Message("user", "a"), Message("assistant", "b"), Message("user", "Why?"),
    )  # fmt: skip
    assert request.tools == (tool, WebSearch())
    assert request.response_format == wanted
    assert (request.temperature, request.max_tokens, request.cache_key) == (0.5, 9, "c")


async def test_omitted_files_are_reported_to_caller_and_model(context: "Context") -> None:
    """A file that does not fit is named in the answer and in the prompt."""
    files = (AttachedFile("a.txt", "word " * 3_000), AttachedFile("b.txt", "word " * 3_000))
    answer = await ask(ModelQuestion("Why?", model="small", files=files), context)
    (request,) = context.requests
    assert [file.name for file in request.files] == ["a.txt"]
    assert request.messages[-1].content == "Why?\n\n(Omitted for lack of space: b.txt.)"
    assert answer.data()["omitted"] == [
        {"what": "b.txt", "reason": "its 3,008 tokens do not fit into the model's context window"},
    ]


async def test_prompt_is_not_sent_if_none_of_its_files_fits(context: "Context") -> None:
    files = (AttachedFile("a.txt", "word " * 9_000),)
    with pytest.raises(ContextLengthExceededError, match="larger window: kimi-see or glm-muse"):
        await ask(ModelQuestion("Why?", model="small", files=files), context)
    assert context.requests == []


async def test_error_without_a_provider_names_the_setting(context: "Context") -> None:
    """This applies to ``auto`` and to the default model."""
    context.daemon.available = []
    for model in ("auto", None):
        with pytest.raises(ServiceUnavailableError, match="KIMI_API_KEY"):
            await ask(ModelQuestion("Why?", model=model), context)


async def test_kimi_search_calls_are_sent_back_until_it_answers(context: "Context") -> None:
    """Each search call is sent back in another completion, and the completions are counted."""
    context.replies = Script(wants(SEARCH), wants(SEARCH), Completion("Found.", "kimi-see", "stop", None))
    answer = await ask(ModelQuestion("Why?", web_search=True), context)
    assert len(context.requests) == answer.completions == answer.data()["completions"] == 3
    assert context.requests[1].messages == (
        Message("user", "Why?"),
        Message("assistant", "", tool_calls=(SEARCH,), reasoning="hm"),
        Message("tool", SEARCH.arguments, tool_call_id="s1", tool_name="$web_search"),
    )
    assert context.requests[2].messages[:3] == context.requests[1].messages
    assert answer.text == "Found."


async def test_endless_search_is_stopped(context: "Context") -> None:
    """The number of completions per question is bounded."""
    context.replies = Script(wants(SEARCH))
    with pytest.raises(ProviderError, match=f"searched the web {MAX_COMPLETIONS} times"):
        await ask(ModelQuestion("Why?", web_search=True), context)
    assert len(context.requests) == MAX_COMPLETIONS


async def test_function_calls_are_returned_to_the_caller(context: "Context") -> None:
    """Requested function calls are returned to the caller and not run."""
    context.replies = Script(wants(SEARCH, LOOK))
    answer = await ask(ModelQuestion("Why?", tools=(FunctionTool("look", "Look.", {}),), web_search=True), context)
    assert answer.completion.tool_calls == (SEARCH, LOOK)
    assert len(context.requests) == 1


async def test_search_results_are_reported(context: "Context") -> None:
    """The answer lists the pages that GLM read."""
    search_result = SearchResult("Page", "https://example.com/", "words", published="2026-01-01")
    context.completion = Completion("Hello.", "glm", "stop", None, search_results=(search_result,))
    answer = await ask(ModelQuestion("Why?"), context)
    assert answer.data()["search_results"] == [
        {"title": "Page", "link": "https://example.com/", "published": "2026-01-01"},
    ]


async def test_streaming_can_be_switched_off(context: "Context") -> None:
    """With ``stream=False`` nothing is streamed, which prevents parallel answers from being mixed."""
    context.streaming, context.deltas = True, (Delta("Hel"), Delta("lo."))
    await ask(ModelQuestion("Why?"), context, stream=False)
    assert context.streamed == []
    await ask(ModelQuestion("Why?"), context)
    assert context.streamed == ["Hel", "lo."]


async def test_an_unknown_model_of_a_configured_provider_has_suggestions(context: "Context") -> None:
    """If the vendor does not have the model, the error names similar models that it lists; files are sent unchecked."""
    provider = OpenProvider("acme", listed=[ListedModel("Large-Model")])
    context.daemon.catalog = context.daemon.catalog.with_providers([provider])
    context.replies["acme/large"] = VendorObjectNotFoundError("no such model")
    with pytest.raises(ProviderError, match="no such model The vendor lists acme/Large-Model"):
        await ask(ModelQuestion("?", model="acme/large", files=(AttachedFile("f", "word " * 9_000),)), context)
    (request,) = context.requests
    assert len(request.files) == 1
