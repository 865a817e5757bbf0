"""Conversations with tool calls: valid and invalid message sequences."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import Completion, ImagePart, Message, TextPart, ToolInvocation
from toold.tools.builtin.vendor.chat_messages import ChatMessage, new_turns, parse_messages
from toold.tools.completions import CompletionLoop

IMAGE = "data:image/png;base64,AA=="
PICTURE = {"type": "image_url", "image_url": {"url": IMAGE}}
CALL = {"id": "c-1", "function": {"name": "look", "arguments": "{}"}}
USER = {"role": "user", "content": "Why?"}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"}
RESULT = {"role": "tool", "tool_call_id": "c-1", "content": "a tree"}
SEARCH = ToolInvocation("s-1", "$web_search", '{"query": "x"}')
LOOK = ToolInvocation("c-1", "look", "{}")


def messages(*turns: dict[str, Any]) -> list[ChatMessage]:
    return [ChatMessage.model_validate(turn) for turn in turns]


def test_conversation_is_parsed_in_order() -> None:
    """Tool calls, results and reasoning are parsed in order."""
    system = {"role": "system", "content": "Be brief."}
    assert parse_messages(messages(system, USER, ASKS, RESULT, {"role": "assistant", "content": "So."}, USER)) == (
        Message("system", "Be brief."),
        Message("user", "Why?"),
        Message("assistant", "", (LOOK,), reasoning="hm"),
        Message("tool", "a tree", tool_call_id="c-1"),
        Message("assistant", "So."),
        Message("user", "Why?"),
    )


def test_content_can_have_parts() -> None:
    """Content can consist of text and image parts in the vendors' format."""
    parts = [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": IMAGE}}]
    words = [{"type": "text", "text": "a tree"}]
    message, _, result = parse_messages(
        messages({"role": "user", "content": parts}, ASKS, {**RESULT, "content": words})
    )
    assert message.content == (TextPart("What is it?"), ImagePart(IMAGE))
    assert result.content == (TextPart("a tree"),)


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        ((USER, ASKS), "messages.2: the result of the call 'c-1' of 'look' is missing; insert {'role': 'tool'"),
        ((USER, ASKS, USER, RESULT), "messages.2: the result of the call 'c-1'"),
        ((USER, RESULT), "messages.1: no preceding assistant message has an open call 'c-1'"),
        ((USER, ASKS, RESULT, RESULT), "messages.3: no preceding assistant message has an open call 'c-1'"),
        ((USER, {**RESULT, "tool_call_id": None}), "messages.1: a result needs the tool_call_id of its call"),
        (({**USER, "tool_calls": [CALL]},), "messages.0: only an assistant message may have tool_calls"),
        (({**USER, "tool_call_id": "c-1"},), "messages.0: only a tool message may have a tool_call_id"),
        ((USER, {"role": "assistant", "content": ""}), "messages.1: the message has no content"),
        (({"role": "user", "content": []},), "messages.0: the message has no content"),
        (({"role": "system", "content": [PICTURE]},), "messages.0: only a user message may have images"),
        ((USER, ASKS, {**RESULT, "content": [PICTURE]}), "messages.2: only a user message may have images"),
    ],
)
def test_invalid_message_sequences_are_refused(turns: tuple[dict[str, Any], ...], says: str) -> None:
    """The error names the message and the remedy."""
    with pytest.raises(InvalidArgumentsError) as caught:
        parse_messages(messages(*turns))
    assert says in caught.value.message
    assert caught.value.details is not None
    assert list(caught.value.details["fields"]) == [says.partition(":")[0]]


def rounds(completion: Completion, *more: Message) -> CompletionLoop:
    return CompletionLoop(completion, 1, (Message("user", "Why?"), *more))


def test_new_turns_exclude_results_of_functions() -> None:
    """Calls of the vendor's search already have results. The caller supplies the results of functions."""
    message = (Message("user", "Why?"),)
    plain = Completion("So.", "kimi", "stop", None, reasoning="hm")
    assert new_turns(message, rounds(plain)) == (Message("assistant", "So.", reasoning="hm"),)
    both = Completion("", "kimi", "tool_calls", None, tool_calls=(SEARCH, LOOK))
    echo = Message("tool", '{"query": "x"}', tool_call_id="s-1", tool_name="$web_search")
    assert new_turns(message, rounds(both)) == (Message("assistant", "", (SEARCH, LOOK)), echo)
    before = (Message("assistant", "", (SEARCH,)), echo)
    assert new_turns(message, rounds(plain, *before)) == (*before, Message("assistant", "So.", reasoning="hm"))
