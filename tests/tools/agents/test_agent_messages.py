"""The messages of a role's conversation: what the model sent is what it gets back."""

from typing import Final

import msgspec
from toold.providers import Completion, Message, ToolInvocation
from toold.tools.agents.agent_messages import TurnAnswer, answer_row, messages_of, row_of, turn_answer
from toold.tools.builtin.vendor.chat_messages import ChatMessage, parse_messages

EXTRA: Final = {"google": {"thought_signature": "s"}}
CALLS: Final = (ToolInvocation("a", "add", "{}", EXTRA), ToolInvocation("b", "log", "[]"))


def test_a_turn_is_sent_back_as_it_came() -> None:
    """Also from the journal: reasoning, and tool calls with what the vendor sent with them."""
    completion = Completion("Two.", "m", "tool_calls", None, reasoning="Hm.", tool_calls=CALLS)
    stored = msgspec.convert(msgspec.to_builtins(turn_answer(completion)), TurnAnswer)
    (message,) = messages_of([answer_row(stored)])
    assert (message.content, message.reasoning, message.tool_calls) == ("Two.", "Hm.", CALLS)


def test_a_message_of_agent_code_is_stored_whole() -> None:
    """With what the vendor sent with its calls."""
    message = Message("assistant", "Two.", tool_calls=CALLS, reasoning="Hm.")
    assert messages_of([row_of(message)]) == (message,)


def test_a_caller_sends_back_what_came_with_a_call() -> None:
    """A message in OpenAI's format may have the extra content of its calls."""
    calls = [
        {"id": "a", "type": "function", "function": {"name": "add", "arguments": "{}"}, "extra_content": EXTRA},
        {"id": "b", "type": "function", "function": {"name": "log", "arguments": "[]"}},
    ]
    results = [ChatMessage(role="tool", tool_call_id=call, content="1") for call in ("a", "b")]
    turns = parse_messages([ChatMessage.model_validate({"role": "assistant", "tool_calls": calls}), *results])
    assert turns[0].tool_calls == CALLS
