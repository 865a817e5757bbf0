"""How a conversation continues after a model has called tools."""

import pytest
from toold.providers import Completion, Message, ToolInvocation, follow_up, functions_wanted

ASKED = (Message("user", "What is new?"),)
SEARCH = ToolInvocation("call_1", "$web_search", '{"search_result": {"search_id": "s"}}')
ADD = ToolInvocation("call_2", "add", '{"a": 1}')


def completion(*calls: ToolInvocation, text: str = "", reasoning: str = "") -> Completion:
    return Completion(text, "m", "tool_calls" if calls else "stop", None, reasoning=reasoning, tool_calls=calls)


def test_answer_without_tool_calls_ends_the_conversation() -> None:
    """An answer without tool calls has no follow-up."""
    assert follow_up(ASKED, completion(text="News.")) is None


def test_arguments_of_a_built_in_tool_are_sent_back() -> None:
    """Kimi runs its search after its call is sent back unchanged, under its name, after the assistant's turn."""
    assert follow_up(ASKED, completion(SEARCH, reasoning="I should look.")) == (
        *ASKED,
        Message("assistant", "", tool_calls=(SEARCH,), reasoning="I should look."),
        Message("tool", SEARCH.arguments, tool_call_id="call_1", tool_name="$web_search"),
    )


def test_functions_are_answered_by_the_caller() -> None:
    """Built-in calls and functions can occur together. The caller runs only the functions."""
    both = completion(SEARCH, ADD)
    assert functions_wanted(both) == (ADD,)
    turns = follow_up(ASKED, both, {"call_2": "3"})
    assert turns is not None
    assert turns[-1] == Message("tool", "3", tool_call_id="call_2")
    with pytest.raises(KeyError):
        follow_up(ASKED, both)
