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
ECHO = {"role": "tool", "name": "$web_search", "content": '{"search_result": {"search_id": "sim-3"}}'}


@pytest.mark.parametrize(
    ("vendor", "body", "words"),
    [
        ("kimi", {"messages": [ASKED, CALLED]}, "missing in assistant tool call message at index 1"),
        ("kimi", {"messages": [ASKED], "tools": [BUILTIN]}, "incompatible with thinking"),
        ("kimi", {"messages": [ASKED], **ON, "reasoning_effort": "low"}, "cannot specify both"),
        ("kimi", {"messages": [{**ECHO, "content": "no JSON"}], **OFF}, "did not come back"),
        ("kimi", {"messages": [{**ECHO, "content": '{"search_result": {}}'}], **OFF}, "did not come back"),
        ("kimi", {"messages": [{**ECHO, "content": "[]"}], **OFF}, "did not come back"),
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
        ("kimi", {"messages": [ASKED, {**CALLED, "reasoning_content": "Hm."}]}),
        ("kimi", {"messages": [ASKED, CALLED, ECHO], "tools": [BUILTIN], **OFF}),
        ("kimi", {"messages": [ASKED], "reasoning_effort": "low"}),
        ("glm", {"messages": [ASKED, CALLED], **ON, "reasoning_effort": "high"}),
        ("glm", {"messages": [ASKED], "response_format": {"type": "json_object"}}),
    ],
)
def test_valid_requests_are_accepted(vendor: str, body: Any) -> None:
    """Valid requests are not rejected. GLM does not require the reasoning."""
    assert rejection_reason(vendor, body, SWITCH) is None


def test_thinking_depends_on_model_and_switch() -> None:
    """A model thinks always, never, or unless the request switches thinking off."""
    assert thinks(OFF, replace(SWITCH, thinking="always"))
    assert not thinks(ON, replace(SWITCH, thinking="none"))
    assert thinks({}, SWITCH)
    assert not thinks(OFF, SWITCH)
