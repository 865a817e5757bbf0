"""The request bodies in each vendor's dialect."""

from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import (
    DIALECTS,
    PRESETS,
    CompletionRequest,
    Depth,
    FunctionTool,
    JsonFormat,
    Message,
    OpenProvider,
    ProviderTerms,
    ToolInvocation,
    preset_dialect,
)
from toold.providers.openai_compatible import compatible_body, is_strict
from toold.providers.request_check import check

CLOSED = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
HELLO = (Message("user", "Hello."),)


def body(preset: str, messages: tuple[Message, ...] = HELLO, *, stream: bool = False, **fields: Any) -> dict[str, Any]:
    dialect = DIALECTS[preset]
    request = CompletionRequest(OpenProvider("acme", ProviderTerms(dialect=dialect)).model("m"), messages, **fields)
    check(request)
    return compatible_body(request, stream=stream, dialect=dialect)


@pytest.mark.parametrize("preset", DIALECTS)
@pytest.mark.parametrize("thinking", [True, False, "minimal", "max"])
def test_every_preset_has_a_form_for_thinking(preset: str, thinking: bool | Depth) -> None:
    """On, off and the deepest thinking are sent to each vendor, in fields that a request without thinking lacks."""
    dialect = DIALECTS[preset]
    model = OpenProvider("acme", ProviderTerms(dialect=dialect)).model("m")
    depth = model.nearest_depth(thinking) if isinstance(thinking, str) else thinking
    plain, thoughtful = body(preset), body(preset, thinking=depth)
    assert plain.items() < thoughtful.items()


@pytest.mark.parametrize(
    ("preset", "thinking", "fields"),
    [
        ("openai", "max", {"reasoning_effort": "xhigh"}),
        ("openai", False, {"reasoning_effort": "none"}),
        ("anthropic", True, {"thinking": {"type": "adaptive"}}),
        ("deepseek", "low", {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}),
        ("deepseek", "minimal", {"thinking": {"type": "disabled"}}),
        ("openrouter", "high", {"reasoning": {"effort": "high"}}),
        ("openrouter", True, {"reasoning": {"enabled": True}}),
        ("groq", "low", {"reasoning_effort": "low", "reasoning_format": "parsed"}),
        ("vllm", False, {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_thinking_is_requested_in_the_vendors_form(preset: str, thinking: Any, fields: dict[str, Any]) -> None:
    """Exactly these fields are added."""
    assert body(preset, thinking=thinking) == {**body(preset), **fields}


def test_a_depth_that_the_vendor_does_not_distinguish_is_refused() -> None:
    """The error names the depths that it does."""
    with pytest.raises(InvalidArgumentsError, match="supported: 'minimal', 'low', 'high', 'max'"):
        body("deepseek", thinking="medium")


def test_json_is_requested_in_the_vendors_form() -> None:
    """A schema is sent where it is enforced, strictly if it may be; else it is part of the instructions. Without a
    schema, some message mentions JSON, because vendors require it.
    """
    form = body("openai", response_format=JsonFormat(CLOSED))["response_format"]
    assert form == {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": CLOSED}}
    loose = body("gemini", response_format=JsonFormat({"type": "object"}))["response_format"]
    assert loose["json_schema"]["strict"] is False
    deepseek = body("deepseek", response_format=JsonFormat(CLOSED))
    assert deepseek["response_format"] == {"type": "json_object"}
    assert "JSON Schema" in deepseek["messages"][0]["content"]
    assert body("lmstudio", response_format=JsonFormat())["response_format"]["json_schema"]["schema"] == {
        "type": "object"
    }
    plain = body("groq", response_format=JsonFormat())
    assert plain["response_format"] == {"type": "json_object"}
    assert [message["role"] for message in plain["messages"]] == ["system", "user"]
    mentioned = body("groq", (Message("user", "Answer in JSON."),), response_format=JsonFormat())
    assert len(mentioned["messages"]) == 1
    with pytest.raises(InvalidArgumentsError, match="does not support JSON output"):
        body("anthropic", response_format=JsonFormat())


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        (CLOSED, True),
        ({"type": "object"}, False),
        ({"type": "object", "additionalProperties": False}, True),
        ({**CLOSED, "required": []}, False),
        ({**CLOSED, "properties": {"a": {"type": "array", "items": {"type": "object"}}}}, False),
        ({"anyOf": [CLOSED, {"type": "string"}]}, True),
    ],
)
def test_a_schema_is_strict_if_all_its_objects_are_closed(schema: dict[str, Any], strict: bool) -> None:
    """OpenAI rejects a strict schema in which a property is optional, at any depth."""
    assert is_strict(schema) is strict


def test_limits_usage_and_tools_have_the_vendors_form() -> None:
    """The limit's field, the usage of a stream, and a forced function call."""
    tool = FunctionTool("echo", "Say it.", {"type": "object"})
    openai = body("openai", stream=True, max_tokens=5, tools=(tool,), tool_choice="required", cache_key="c")
    assert openai["max_completion_tokens"] == 5
    assert openai["stream_options"] == {"include_usage": True}
    assert openai["tool_choice"] == "required"
    assert openai["prompt_cache_key"] == "c"
    mistral = body("mistral", stream=True, max_tokens=5, cache_key="c")
    assert mistral["max_tokens"] == 5
    assert not {"stream_options", "prompt_cache_key"} & set(mistral)


def test_earlier_reasoning_is_sent_where_the_vendor_reads_it() -> None:
    """Others reject unknown fields: also what came with a call of another vendor, after a failover."""
    call = ToolInvocation("call_1", "echo", "{}", {"google": {"thought_signature": "s"}})
    messages = (
        *HELLO,
        Message("assistant", "", (call,), reasoning="Why?"),
        Message("tool", "1", tool_call_id="call_1"),
    )
    assert body("deepseek", messages)["messages"][1]["reasoning_content"] == "Why?"
    assert body("openrouter", messages)["messages"][1]["reasoning"] == "Why?"
    assert set(body("gemini", messages)["messages"][1]) == {"role", "content", "tool_calls"}
    assert body("gemini", messages)["messages"][1]["tool_calls"][0]["extra_content"] == call.extra_content
    assert "extra_content" not in body("openai", messages)["messages"][1]["tool_calls"][0]


def test_another_server_of_type_openai_has_the_common_dialect() -> None:
    """Its limit is ``max_tokens``; a preset with another base URL keeps its dialect."""
    assert preset_dialect("openai", PRESETS["openai"].base_url + "/").limit_field == "max_completion_tokens"
    assert preset_dialect("openai", "https://llm.example.org/v1").limit_field == "max_tokens"
    assert preset_dialect("deepseek", "https://llm.example.org/v1") is DIALECTS["deepseek"]
    assert set(PRESETS) <= set(DIALECTS)
