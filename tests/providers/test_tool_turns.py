"""How a conversation goes on after a model asked for tools."""

import pytest
from toold.providers import Completion, Message, ToolInvocation, follow_up, functions_wanted

ASKED = (Message("user", "What is new?"),)
SEARCH = ToolInvocation("call_1", "$web_search", '{"search_result": {"search_id": "s"}}')
ADD = ToolInvocation("call_2", "add", '{"a": 1}')


def completion(*calls: ToolInvocation, text: str = "", reasoning: str = "") -> Completion:
    return Completion(text, "m", "tool_calls" if calls else "stop", None, reasoning=reasoning, tool_calls=calls)


def test_an_answer_without_calls_is_the_last_one() -> None:
    """There is nothing to ask next."""
    assert follow_up(ASKED, completion(text="News.")) is None


def test_a_built_in_tool_gets_its_arguments_back() -> None:
    """Kimi searches by itself once its call comes back as it was, under its name, after its own turn."""
    assert follow_up(ASKED, completion(SEARCH, reasoning="I should look.")) == (
        *ASKED,
        Message("assistant", "", tool_calls=(SEARCH,), reasoning="I should look."),
        Message("tool", SEARCH.arguments, tool_call_id="call_1", tool_name="$web_search"),
    )


def test_functions_are_answered_by_the_caller() -> None:
    """Built-in calls and functions may come together; only functions are the caller's to run."""
    both = completion(SEARCH, ADD)
    assert functions_wanted(both) == (ADD,)
    turns = follow_up(ASKED, both, {"call_2": "3"})
    assert turns is not None
    assert turns[-1] == Message("tool", "3", tool_call_id="call_2")
    with pytest.raises(KeyError):
        follow_up(ASKED, both)
