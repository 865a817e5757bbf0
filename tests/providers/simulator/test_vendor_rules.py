"""The chat requests that the vendors refuse."""

from dataclasses import replace
from typing import Any

import pytest
from toold.providers import Model, ModelCatalog
from toold.providers.simulator.vendor_rules import rejection_reason, thinks

SWITCH: Model = replace(ModelCatalog.load().default("glm"), thinking="switch")
ON = {"thinking": {"type": "enabled"}}
OFF = {"thinking": {"type": "disabled"}}
ASKED = {"role": "user", "content": "Hi."}
CALLED = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]}
BUILTIN = {"type": "builtin_function", "function": {"name": "$web_search"}}
ECHO = {
    "role": "tool",
    "tool_call_id": "1",
    "name": "$web_search",
    "content": '{"search_result": {"search_id": "sim-3"}}',
}
RESULT = {"role": "tool", "tool_call_id": "1", "content": "3"}
BOTH = {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}, {"id": "2"}]}
SECOND = {**RESULT, "tool_call_id": "2"}


@pytest.mark.parametrize(
    ("vendor", "body", "words"),
    [
        ("kimi", {"messages": [ASKED, CALLED, RESULT]}, "missing in assistant tool call message at index 1"),
        ("kimi", {"messages": [ASKED], "tools": [BUILTIN]}, "incompatible with thinking"),
        ("kimi", {"messages": [ASKED], **ON, "reasoning_effort": "low"}, "cannot specify both"),
        ("kimi", {"messages": [CALLED, {**ECHO, "content": "no JSON"}], **OFF}, "did not come back"),
        ("kimi", {"messages": [CALLED, {**ECHO, "content": '{"search_result": {}}'}], **OFF}, "did not come back"),
        ("kimi", {"messages": [CALLED, {**ECHO, "content": "[]"}], **OFF}, "did not come back"),
        ("glm", {"messages": [ASKED], "response_format": {"type": "json_schema"}}, "response_format"),
        ("glm", {"messages": [ASKED], "tools": [{"type": "web_search", "web_search": {}}]}, "search_engine"),
    ],
)  # fmt: skip
def test_invalid_requests_are_refused(vendor: str, body: Any, words: str) -> None:
    """The error message names the field or the problem."""
    assert words in (rejection_reason(vendor, body, SWITCH) or "")


@pytest.mark.parametrize(
    ("vendor", "body"),
    [
        ("kimi", {"messages": [ASKED, {**CALLED, "reasoning_content": "Hm."}, RESULT]}),
        ("openai", {"messages": [ASKED, BOTH, SECOND, RESULT, CALLED, RESULT, ASKED]}),
        ("kimi", {"messages": [ASKED, CALLED, ECHO], "tools": [BUILTIN], **OFF}),
        ("kimi", {"messages": [ASKED], "reasoning_effort": "low"}),
        ("glm", {"messages": [ASKED, CALLED, RESULT], **ON, "reasoning_effort": "high"}),
        ("glm", {"messages": [ASKED], "response_format": {"type": "json_object"}}),
    ],
)
def test_valid_requests_are_accepted(vendor: str, body: Any) -> None:
    """Valid requests are not rejected. GLM does not require the reasoning."""
    assert rejection_reason(vendor, body, SWITCH) is None


@pytest.mark.parametrize("vendor", ["kimi", "glm", "openai"])
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([ASKED, RESULT], "messages[1]: tool_call_id 1"),
        ([ASKED, CALLED, RESULT, RESULT], "messages[3]: tool_call_id 1"),
        ([ASKED, CALLED, RESULT, ASKED, RESULT], "messages[4]: tool_call_id 1"),
        ([ASKED, CALLED, SECOND], "messages[2]: tool_call_id 2"),
        ([ASKED, BOTH, SECOND], "did not have response messages: 1"),
        ([ASKED, CALLED, ASKED, RESULT], "did not have response messages: 1"),
        ([ASKED, CALLED, BOTH, RESULT, SECOND], "did not have response messages: 1"),
    ],
)
def test_calls_and_results_come_in_pairs(vendor: str, messages: Any, words: str) -> None:
    """A result without its call, a second result, and a call without a result before the next message are refused."""
    reason = rejection_reason(vendor, {"messages": messages, **OFF}, SWITCH)
    assert ("messages" if vendor == "glm" else words) in (reason or "")


def test_thinking_depends_on_model_and_switch() -> None:
    """A model thinks always, never, or unless the request switches thinking off."""
    assert thinks(OFF, replace(SWITCH, thinking="always"))
    assert not thinks(ON, replace(SWITCH, thinking="none"))
    assert thinks({}, SWITCH)
    assert not thinks(OFF, SWITCH)
