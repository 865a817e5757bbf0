"""``kimi_chat_with_tools``: tool calls are returned as data, and the caller continues with their results."""

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import ContextLengthExceededError, InvalidArgumentsError, ServiceUnavailableError
from toold.providers import ModelCatalog

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

CHAT = "kimi_chat_with_tools"
LOOK = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place.",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
    },
}
SEARCHES = "kimi-k2.6"


def wants(name: str, **arguments: Any) -> str:
    """A prompt that makes the simulator call a function."""
    return f"Have a look. [[sim:tool={name} args={json.dumps(arguments)}]]"


async def test_tool_calls_are_returned_as_data(harness: "Harness") -> None:
    """One completion returns the calls with parsed arguments, and the text names them. No function is run."""
    result = await harness.call(CHAT, messages=wants("look", place="here"), tools=[LOOK])
    assert harness.request_counts == {"kimi chat": 1}
    assert harness.last["tools"] == [LOOK]
    data = result.structured
    assert isinstance(data, dict)
    (call,) = data["tool_calls"]
    assert (call["name"], call["arguments"]) == ("look", {"place": "here"})
    assert data["finish_reason"] == "tool_calls"
    assert 'calls look({"place": "here"})' in result.text


@pytest.mark.parametrize("model", ["kimi-k3.1-pro", "kimi-k2.6", "moonshot-v1-32k"])
async def test_next_call_sends_the_tool_results(harness: "Harness", model: str) -> None:
    """The next request has the earlier messages, those of ``append`` and the result. Thinking models receive their
    reasoning.
    """
    requests: list[dict[str, Any]] = [{"role": "user", "content": wants("look", place="here")}]
    first = await harness.data(CHAT, messages=requests, tools=[LOOK], model=model)
    result = {"role": "tool", "tool_call_id": first["tool_calls"][0]["id"], "content": "a tree"}
    second = await harness.call(CHAT, messages=[*requests, *first["append"], result], tools=[LOOK], model=model)
    data = second.structured
    assert isinstance(data, dict)
    assert 'A tool answered "a tree"' in second.text
    assert data["tool_calls"] == []
    assert [turn["role"] for turn in data["append"]] == ["assistant"]
    assert data["append"][0]["content"] == second.text
    assert harness.last["messages"] == [*requests, *first["append"], result]


async def test_content_parts_are_sent_unchanged(harness: "Harness") -> None:
    """Text and image parts are sent to a model that accepts images. Kimi accepts no image URLs."""
    words, image = {"type": "text", "text": "What is it?"}, "data:image/png;base64,AA=="
    request = [{"role": "user", "content": [words, {"type": "image_url", "image_url": {"url": image}}]}]
    result = await harness.call(CHAT, messages=request)
    assert harness.last["messages"] == request
    assert "1 image attached" in result.text
    error = await harness.refuse(CHAT, messages=request, model="moonshot-v1-8k")
    assert "images: moonshot-v1-8k does not accept images; use a model that does" in error.message
    linked = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    error = await harness.refuse(CHAT, messages=[{"role": "user", "content": [words, linked]}])
    assert "no available model can accept image URLs" in error.message


async def test_web_search_loop_runs_within_the_call(harness: "Harness") -> None:
    """Each round is a counted completion. ``append`` has all messages, so that the caller can
    continue the conversation.
    """
    request = [{"role": "user", "content": "What is new?"}]
    result = await harness.call(CHAT, messages=request, web_search=True, model=SEARCHES)
    assert harness.request_counts == {"kimi chat": 2}
    data = result.structured
    assert isinstance(data, dict)
    assert (data["completions"], data["tool_calls"]) == (2, [])
    assert "The web was searched 1 time." in result.text
    assert [turn["role"] for turn in data["append"]] == ["assistant", "tool", "assistant"]
    assert data["append"][1]["name"] == "$web_search"
    more = {"role": "user", "content": "And?"}
    await harness.call(CHAT, messages=[*request, *data["append"], more], model=SEARCHES, thinking=False)
    assert harness.last["messages"] == [*request, *data["append"], more]


async def test_functions_and_web_search_can_be_combined(harness: "Harness") -> None:
    """After the search the model can still call a function, which the caller runs."""
    request = wants("look", place="here")
    data = await harness.data(CHAT, messages=request, tools=[LOOK], web_search=True, model=SEARCHES)
    assert [call["name"] for call in data["tool_calls"]] == ["look"]
    assert {tool["type"] for tool in harness.last["tools"]} == {"function", "builtin_function"}


async def test_web_search_without_a_model_chooses_a_suitable_one(harness: "Harness") -> None:
    """Kimi's default model does not support web search. Without another available model the call fails."""
    today = dt.datetime.now(dt.UTC).date()
    able = [model for model in ModelCatalog.load().models if model.provider == "kimi" and model.web_search]
    if any(model.retired is None or model.retired > today for model in able):
        data = await harness.data(CHAT, messages="What is new?", web_search=True)
        assert data["model"] in {model.id for model in able}
        assert data["model_choice_reason"]
    else:
        error = await harness.refuse(CHAT, messages="What is new?", web_search=True)
        assert "no available model" in error.message


@pytest.mark.parametrize(
    "item", [{"type": "builtin_function", "function": {"name": "$web_search"}}, {"type": "web_search"}]
)
async def test_the_vendors_search_tool_is_web_search(harness: "Harness", item: dict[str, Any]) -> None:
    """An item of ``tools`` that is the vendor's own search does the same as ``web_search``."""
    data = await harness.data(CHAT, messages="What is new?", tools=[item], model=SEARCHES)
    assert data["completions"] == 2


async def test_messages_may_be_texts(harness: "Harness") -> None:
    """A text is a message of the user, and so is a message without a role. Its content may be called ``text``."""
    await harness.call(CHAT, messages=["Why?", {"text": "Really?"}])
    assert harness.last["messages"] == [{"role": "user", "content": text} for text in ("Why?", "Really?")]


async def test_the_operators_language_is_sent_and_not_appended(open_harness: "OpenHarness") -> None:
    """The caller's next call gets the instruction again, once."""
    harness = await open_harness(TOOLD_LOCALE="fr-FR")
    data = await harness.data(CHAT, messages="Why?")
    assert [message["role"] for message in harness.last["messages"]] == ["system", "user"]
    assert "fr-FR" in harness.last["messages"][0]["content"]
    assert [message["role"] for message in data["append"]] == ["assistant"]


SEE = {"type": "function", "function": {"name": "see", "description": "", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("model", ["kimi-k3.1-pro", SEARCHES, "moonshot-v1-32k"])
async def test_the_choice_of_the_caller_decides_about_function_calls(harness: "Harness", model: str) -> None:
    """``none`` prevents a call, ``required`` and a name force one; a name is sent as a choice of one function, because
    not every model accepts a name. Thinking is switched off where Moonshot requires that.
    """

    async def calls(messages: str, tool_choice: Any) -> list[str]:
        tools = [SEE, LOOK]
        data = await harness.data(CHAT, messages=messages, tools=tools, tool_choice=tool_choice, model=model)
        return [call["name"] for call in data["tool_calls"]]

    assert await calls(wants("look"), "auto") == ["look"]
    assert "tool_choice" not in harness.last
    assert await calls(wants("look"), "none") == []
    assert await calls("Why?", "required") == ["see"]
    assert (harness.last["tool_choice"], len(harness.last["tools"])) == ("required", 2)
    assert harness.last.get("thinking") == ({"type": "disabled"} if model == SEARCHES else None)
    assert await calls("Why?", {"type": "function", "function": {"name": "look"}}) == ["look"]
    assert (harness.last["tool_choice"], harness.last["tools"]) == ("required", [LOOK])


async def test_answer_is_streamed(harness: "Harness") -> None:
    """The streamed chunks add up to the text."""
    heard: list[str] = []
    result = await harness.client.call(CHAT, {"messages": "Say more."}, on_chunk=heard.append)
    assert "".join(heard) == result.text


async def test_conversation_over_the_window_is_refused(harness: "Harness") -> None:
    """The conversation is not shortened. The error has the token numbers and suggests only Kimi's models."""
    error = await harness.refuse(CHAT, messages="word " * 20_000, model="moonshot-v1-8k")
    assert isinstance(error, ContextLengthExceededError)
    assert error.details is not None
    assert error.details["context_window"] == 8_192
    assert error.details["models"]
    assert not any(name.startswith("glm") for name in error.details["models"])


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"messages": ""}, "messages.0: the message has no content"),
    ({"messages": []}, "messages should have at least 1 item"),
    ({"messages": 7}, "messages should be an array, not 7"),
    ({"messages": [{"role": "robot", "content": "x"}]}, "messages.0.role should be 'system', 'user'"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "messages.0: a result needs the tool_call_id of its call"),
    ({"messages": [{"role": "user", "content": [{"type": "video"}]}]}, "messages.0.content"),
    ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages.0.content"),
    ({"tools": "look"}, 'tools should be an array, not "look"'),
    ({"tools": [LOOK["function"]]}, "tools.0.function is missing"),
    ({"tools": [{**LOOK, "type": "builtin_function"}]}, "tools.0.function.name should be '$web_search'"),
    ({"tools": [LOOK, LOOK]}, "two functions are named 'look'"),
    ({"tools": [{"function": {"name": "$web_search"}}]}, "tools.0.function.name should match pattern"),
    ({"web_search": "yes"}, 'web_search should be true or false, not "yes"'),
    ({"web_search": True, "model": "kimi-k3"}, "web_search: kimi-k3 cannot search the web"),
    (
        {"web_search": True, "model": SEARCHES, "thinking": True},
        "thinking: kimi-k2.6 cannot think during a web search",
    ),
    ({"model": "glm-4.6"}, "glm-4.6 is a glm model; the call requires kimi"),
    ({"model": "kimi-k9"}, "Unknown model"),
    ({"thinking": "somewhat"}, "thinking should be true or false"),
    ({"temperature": -1}, "temperature should be greater than or equal to 0, not -1"),
    ({"temperature": 0.5, "model": "kimi-k3"}, "temperature: kimi-k3 has a fixed temperature"),
    ({"max_tokens": 0}, "max_tokens should be greater than or equal to 1, not 0"),
    ({"tool_choice": "any"}, "tool_choice should be 'auto', 'none' or 'required'"),
    ({"tool_choice": "required"}, "tool_choice: 'required' needs at least one function in tools"),
    ({"tools": [LOOK], "tool_choice": {"function": {"name": "see"}}}, "there is no function 'see' in tools"),
    (
        {"tools": [LOOK], "tool_choice": "required", "model": "kimi-k2.7-code"},
        "kimi-k2.7-code always thinks, so it cannot be forced to call a function",
    ),
    (
        {"tools": [LOOK], "tool_choice": "required", "model": SEARCHES, "thinking": True},
        "Kimi's forced function calls cannot be used with thinking",
    ),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(CHAT, **{"messages": "Why?", **arguments})
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    await harness.check_failures("kimi", "chat", CHAT, messages="Why?", tools=[LOOK])


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    error = await (await open_harness(KIMI_API_KEY="")).refuse(CHAT, messages="Why?")
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
