"""``chat``: the request to the model, and the answer to the caller."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    CallError,
    ContextLengthExceededError,
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ServiceUnavailableError,
)
from toold.providers import AttachedFile, Completion, Delta, ImagePart, Message, ModelCatalog, TextPart, WebSearch
from toold.tools import ToolOutput, bind
from toold.tools.builtin.chat import chat

if TYPE_CHECKING:
    from tests.tools.tool_context import Context

Write = Callable[[str, str | bytes], Path]

GIF = b"GIF89a\x01\x00"


async def ask(context: "Context", **arguments: Any) -> ToolOutput:
    """The answer of ``chat`` for these arguments, bound as dispatch binds them."""
    answer = await chat.function(bind(chat, {"prompt": "Why?"} | arguments), context)
    assert isinstance(answer, ToolOutput)
    return answer


async def fail(context: "Context", kind: type[CallError], **arguments: Any) -> CallError:
    """The error of ``chat``, after checking that no model was asked."""
    with pytest.raises(kind) as caught:
        await ask(context, **arguments)
    assert context.requests == []
    return caught.value


async def test_prompt_is_the_only_required_argument(context: "Context") -> None:
    """The default model is asked, and all other settings are left to the vendor."""
    answer = await ask(context)
    (request,) = context.requests
    assert request.messages == (Message("user", "Why?"),)
    assert request.model.id == "kimi-see"
    assert (request.temperature, request.max_tokens, request.thinking, request.files) == (None, None, None, ())
    assert answer.text == "Hello."
    assert answer.data == {
        "text": "Hello.", "model": "kimi-see-2026", "provider": "kimi", "finish_reason": "stop",
        "continuation_id": "thread-1",
    }  # fmt: skip
    assert context.reports == ["asking kimi-see"]


async def test_all_arguments_reach_the_model(context: "Context", write: Write) -> None:
    """System message, model alias, files, temperature and token limit are part of the request."""
    write("src/a.py", "print(1)\n")
    await ask(context, system="Be brief.", model="small", files=["src/a.py"], temperature=0.5, max_tokens=100)
    (request,) = context.requests
    assert request.messages == (Message("system", "Be brief."), Message("user", "Why?"))
    assert request.model.id == "kimi-small"
    assert request.files == (AttachedFile("src/a.py", "print(1)\n"),)
    assert (request.temperature, request.max_tokens) == (0.5, 100)


async def test_images_are_sent_with_the_question(context: "Context", write: Write) -> None:
    """A path becomes a data URL. URLs are sent unchanged."""
    write("a.gif", GIF)
    images = ["a.gif", "https://example.com/b.png", "data:image/png;base64,AA=="]
    await ask(context, model="glm-gone", images=images)
    (request,) = context.requests
    assert request.messages[0].content == (
        TextPart("Why?"),
        ImagePart("data:image/gif;base64,R0lGODlhAQA="),
        ImagePart("https://example.com/b.png"),
        ImagePart("data:image/png;base64,AA=="),
    )


async def test_relative_paths_are_relative_to_the_clients_directory(
    context: "Context", workspace: Path, write: Write
) -> None:
    """A client that works in a subdirectory of the root names files relative to it."""
    write("project/a.txt", "hi")
    context.files = context.files.for_client(str(workspace / "project"), trusted=False)
    await ask(context, files=["a.txt"])
    assert context.requests[0].files == (AttachedFile("project/a.txt", "hi"),)


async def test_answer_is_streamed_to_streaming_clients(context: "Context") -> None:
    """A streaming client receives the text in pieces, without the reasoning."""
    context.streaming = True
    context.deltas = (Delta(reasoning="hm"), Delta("Hel"), Delta("lo."))
    assert (await ask(context)).text == "Hello."
    assert context.streamed == ["Hel", "lo."]


async def test_nothing_is_streamed_to_other_clients(context: "Context") -> None:
    """Without a streaming client the vendor is not asked to stream."""
    context.deltas = (Delta("Hel"), Delta("lo."))
    await ask(context)
    assert context.streamed == []


async def test_reasoning_is_separate_from_the_text(context: "Context") -> None:
    """The reasoning is part of the data, not of the answer's text."""
    context.completion = Completion("42", "glm-muse", "stop", None, reasoning="6 x 7")
    answer = await ask(context, model="glm-muse", thinking=True)
    assert (answer.text, answer.data["reasoning"]) == ("42", "6 x 7")
    assert context.requests[0].thinking is True


@pytest.mark.parametrize(
    ("reason", "says"), [("length", "truncated at the token limit"), ("content_filter", "content filter")]
)
async def test_truncated_answer_has_a_notice(context: "Context", reason: Any, says: str) -> None:
    """The text is unchanged, and a notice reports the truncation."""
    context.completion = Completion("Once upon", "kimi-see", reason, None)
    answer = await ask(context)
    assert answer.text == "Once upon"
    assert answer.data["finish_reason"] == reason
    assert says in answer.data["notice"]


async def test_empty_answer_explains_the_cause(context: "Context") -> None:
    """The text of an empty answer names the cause, for clients that read only the text."""
    context.completion = Completion("", "kimi-see", "length", None, reasoning="hm" * 100)
    assert "kimi-see returned no text: the answer was truncated" in str((await ask(context)).text)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"prompt": ""}, "prompt "),
        ({"prompt": None}, "prompt should be a string, not null"),
        ({"temperature": 2.5}, "temperature should be less than or equal to 1, not 2.5"),
        ({"temperature": "warm"}, 'temperature should be a number, not "warm"'),
        ({"thinking": "yes"}, "thinking should be true or false, not \"yes\", or should be 'minimal', 'low'"),
        ({"web_search": 1}, "web_search should be true or false, not 1"),
        ({"continuation_id": 1}, "continuation_id should be a string, not 1"),
        ({"max_tokens": 0}, "max_tokens should be greater than or equal to 1, not 0"),
        ({"files": 7}, "files should be an array, not 7"),
        ({"files": ["a"] * 65}, "files should have at most 64 items"),
        ({"images": ["a.gif"] * 17}, "images should have at most 16 items"),
        ({"images": [1]}, "images.0 should be a string, not 1"),
        ({"temprature": 1}, "did you mean 'temperature'"),
    ],
)
async def test_invalid_arguments_are_refused(context: "Context", arguments: dict[str, Any], says: str) -> None:
    """The error names each invalid argument and the expected value."""
    assert says in (await fail(context, InvalidArgumentsError, **arguments)).message


def test_default_timeout_allows_long_thinking() -> None:
    """The default timeout is 330 s, longer than any model's own timeout per attempt."""
    assert chat.timeout_s == 330


async def test_an_unknown_model_gets_a_suggestion(context: "Context") -> None:
    """An unknown model is an error with a suggestion, and no other model is used."""
    assert "kimi-small" in (await fail(context, InvalidArgumentsError, model="kimi-smal")).message


async def test_error_without_keys_names_the_setting(context: "Context") -> None:
    """Without a configured provider the error names the setting."""
    context.daemon.available = []
    assert "KIMI_API_KEY" in (await fail(context, ServiceUnavailableError)).message


@pytest.mark.parametrize(
    ("arguments", "field", "what", "models"),
    [
        ({"model": "kimi-small", "images": ["a.gif"]}, "images", "kimi-small does not accept images", ["kimi-see"]),
        ({"model": "kimi-small", "thinking": True}, "thinking", "kimi-small does not think", ["kimi-see", "glm-muse"]),
        ({"model": "glm-muse", "thinking": False}, "thinking", "glm-muse always thinks", ["kimi-see", "kimi-small"]),
    ],
)
async def test_unsupported_request_suggests_other_models(
    context: "Context", write: Write, arguments: dict[str, Any], field: str, what: str, models: list[str]
) -> None:
    """Unsupported images or thinking settings raise an error that names suitable models."""
    write("a.gif", GIF)
    error = await fail(context, InvalidArgumentsError, **arguments)
    assert error.details == {"fields": {field: what}, "models": models}
    assert f"{field}: {what}; use a model that does: {' or '.join(models)}" in error.message


async def test_only_available_models_are_suggested(context: "Context", write: Write) -> None:
    """Models of unconfigured providers and retired models are not suggested."""
    write("a.gif", GIF)
    context.daemon.available = ["glm"]
    error = await fail(context, InvalidArgumentsError, model="kimi-small", images=["a.gif"])
    assert error.details is not None
    assert error.details["models"] == []
    assert "no available model does" in error.message


async def test_request_over_the_context_window_is_not_sent(context: "Context", write: Write) -> None:
    """The error has the token numbers and the models with a sufficient window."""
    write("a.txt", "word " * 10_000)
    error = await fail(context, ContextLengthExceededError, model="small", files=["a.txt"], max_tokens=500)
    assert error.message == (
        "The request has about 10,010 tokens and 500 for the answer; the context window of kimi-small is 8,000 tokens; "
        "use a model with a larger window: kimi-see or glm-muse."
    )
    assert error.details == {
        "estimated_tokens": 10_010,
        "max_tokens": 500,
        "context_window": 8_000,
        "models": ["kimi-see", "glm-muse"],
    }


async def test_max_tokens_over_the_output_limit_is_refused(context: "Context") -> None:
    """The error names the output limit of the model."""
    error = await fail(context, InvalidArgumentsError, model="small", max_tokens=4001)
    assert "kimi-small answers with at most 4,000 tokens, not 4,001" in error.message


@pytest.mark.parametrize(
    ("files", "kind", "says"),
    [
        (["ok.txt", "gone.txt"], NotFoundError, "files.1: 'gone.txt' does not exist"),
        (["../x.txt"], PermissionDeniedError, "files.0: '../x.txt' is outside the directories"),
        (["a.gif"], InvalidArgumentsError, "files.0: 'a.gif' is a binary file"),
    ],
)
async def test_unreadable_file_error_names_the_file(
    context: "Context", write: Write, files: list[str], kind: type[CallError], says: str
) -> None:
    """The message and ``details.fields`` name the position of the file."""
    write("ok.txt", "hi")
    write("a.gif", GIF + b"\0")
    error = await fail(context, kind, files=files)
    assert says in error.message
    assert error.details is not None
    assert list(error.details["fields"]) == [f"files.{len(files) - 1}"]


async def test_conversation_is_continued(context: "Context", write: Write) -> None:
    """The next request has the earlier turns, the names of their files, and the files. The answer has the same id."""
    write("a.txt", "hi")
    first = await ask(context, files=["a.txt"])
    context.completion = Completion("Because.", "glm-muse-1", "stop", None)
    second = await ask(context, prompt="Really?", model="glm-muse", continuation_id=first.data["continuation_id"])
    assert second.data["continuation_id"] == first.data["continuation_id"]
    request = context.requests[1]
    assert request.messages == (
        Message("user", "Why?\n\n(Attached files: a.txt.)"),
        Message("assistant", "Hello."),
        Message("user", "Really?"),
    )
    assert request.files == (AttachedFile("a.txt", "hi"),)
    assert request.cache_key == first.data["continuation_id"]
    turns = context.threads[first.data["continuation_id"]].turns
    assert [(turn.role, turn.text, turn.model) for turn in turns] == [
        ("user", "Why?", None),
        ("assistant", "Hello.", "kimi-see-2026"),
        ("user", "Really?", None),
        ("assistant", "Because.", "glm-muse-1"),
    ]


async def test_unknown_conversation_is_an_error(context: "Context") -> None:
    """No model is asked if the conversation does not exist; an id that the client made up begins a new one."""
    await fail(context, NotFoundError, continuation_id="9" * 32)
    answer = await ask(context, continuation_id="my-review-7")
    assert answer.data["continuation_id"] == "thread-1"
    assert "continuation_id is not from an answer" in context.notices[0]


async def test_failed_answer_does_not_change_the_conversation(context: "Context") -> None:
    """The same question can be sent again."""
    first = await ask(context)
    context.replies["kimi-see"] = ServiceUnavailableError("down")
    with pytest.raises(ServiceUnavailableError):
        await ask(context, continuation_id=first.data["continuation_id"])
    assert len(context.threads[first.data["continuation_id"]].turns) == 2


@pytest.mark.parametrize(
    ("model", "wanted", "used", "notice"),
    [
        ("glm-muse", "max", "max", None),
        (
            "glm-muse",
            "medium",
            "low",
            "glm-muse does not support the thinking depth medium; used the nearest depth, low",
        ),
        ("kimi-see", "low", "max", "kimi-see does not support the thinking depth low; used the nearest depth, max"),
        ("kimi-see", "minimal", "minimal", None),
    ],
)
async def test_unsupported_depth_is_replaced_by_the_nearest(
    context: "Context", model: str, wanted: str, used: str, notice: str | None
) -> None:
    """The answer reports the depth that was used, with a notice if it differs from the requested one."""
    answer = await ask(context, model=model, thinking=wanted)
    assert context.requests[0].thinking == answer.data["thinking"] == used
    assert answer.data.get("notice", "").startswith(notice or "")
    assert ("notice" in answer.data) == bool(notice)


async def test_thinking_is_never_switched_on_or_off_instead_of_the_requested_depth(context: "Context") -> None:
    """A model that always thinks rejects ``minimal``, and one that never thinks rejects a depth."""
    with pytest.raises(InvalidArgumentsError, match=r"glm-muse supports thinking low or max, not .*: kimi-see"):
        await ask(context, model="glm-muse", thinking="minimal")
    with pytest.raises(InvalidArgumentsError, match=r"kimi-small does not think; .*: kimi-see or glm-muse"):
        await ask(context, model="kimi-small", thinking="low")
    assert context.requests == []


async def test_auto_reports_the_chosen_model_and_the_reason(context: "Context") -> None:
    """``auto`` chooses the cheapest suitable model, here the only one with a price."""
    answer = await ask(context, model="auto")
    assert context.requests[0].model.id == "kimi-small"
    assert answer.data["model_choice_reason"].startswith("it is the cheapest of the 3 available models")
    assert context.model_choice_reason == answer.data["model_choice_reason"]


async def test_the_operators_default_may_be_auto(context: "Context", monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that names no model then gets the cheapest suitable one; a named one is asked as before."""
    monkeypatch.setattr(context.daemon, "default_model", lambda: "auto")
    answer = await ask(context)
    assert answer.data["model_choice_reason"].startswith("it is the cheapest")
    await ask(context, model="kimi-see")
    assert [request.model.id for request in context.requests] == ["kimi-small", "kimi-see"]


async def test_models_answer_in_the_operators_language(context: "Context") -> None:
    """The instruction follows the caller's own system instructions."""
    context.daemon.locale = "fr-FR"
    await ask(context, system="Be brief.")
    instructions = context.requests[0].messages[0].content
    assert isinstance(instructions, str)
    assert instructions.startswith("Be brief.\n\n")
    assert "fr-FR" in instructions


async def test_web_search_uses_the_vendors_search(context: "Context") -> None:
    """The vendor's search is offered to a model that supports it. Other models are refused."""
    await ask(context, web_search=True)
    assert context.requests[0].tools == (WebSearch(),)
    with pytest.raises(InvalidArgumentsError, match=r"web_search: glm-muse cannot search the web; .*: kimi-see"):
        await ask(context, model="glm-muse", web_search=True)


@pytest.mark.parametrize(
    ("arguments", "model"),
    [
        ({"images": ["https://example.com/a.png"]}, "glm-eyes"),
        ({"max_tokens": 300_000}, "glm-muse"),
    ],
)
async def test_another_model_replaces_an_unsuitable_default(
    context: "Context", arguments: dict[str, Any], model: str
) -> None:
    """If the caller names no model, answer and metadata report the chosen model and why the default was unsuitable."""
    see, *others = context.daemon.catalog.models
    eyes = replace(others[1], id="glm-eyes", inputs=("text", "image"), thinking="none", efforts=(), default=False)
    context.daemon.catalog = ModelCatalog((replace(see, max_output=200_000), *others, eyes))
    answer = await ask(context, **arguments)
    assert context.requests[0].model.id == model
    assert "not the default model: kimi-see " in answer.data["model_choice_reason"]
    assert context.model_choice_reason == answer.data["model_choice_reason"]
