"""``complete``: the fields of OpenAI's format reach the vendor, and what a model does not support is refused."""

import json
from typing import Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.testing import daemon_under_test

IMAGE = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}, "strict": True}}
TIDES = {"type": "function", "function": {"name": "tides", "parameters": {"type": "object"}}}


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


async def test_the_fields_reach_the_vendor() -> None:
    """Images with their detail, functions, a certain function, JSON, efforts and sampling, in the vendor's names; the
    model's message has its function calls.
    """
    async with daemon_under_test() as daemon:
        image = {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}}
        await daemon.client.call(
            "complete",
            {
                "model": "kimi-k2.6",
                "messages": user([{"type": "text", "text": "What is this?"}, image]),
                "max_completion_tokens": 50,
                "reasoning_effort": "none",
                "stop": "END",
                "parallel_tool_calls": False,
                "tools": [WEATHER, TIDES],
                "tool_choice": {"type": "function", "function": {"name": "weather"}},
            },
        )
        body = daemon.simulator.log[-1].body
        assert body["messages"][-1]["content"][1] == image
        assert (body["max_completion_tokens"], body["stop"], body["parallel_tool_calls"]) == (50, "END", False)
        assert [tool["function"]["name"] for tool in body["tools"]] == ["weather"]
        assert body["tools"][0]["function"]["strict"] is True
        assert (body["tool_choice"], body["thinking"]) == ("required", {"type": "disabled"})

        form = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}}}
        answer = await daemon.client.call(
            "complete", {"model": "glm-4.6", "messages": user("A JSON object."), "response_format": form}
        )
        assert json.loads(answer.structured["message"]["content"]) is not None
        answer = await daemon.client.call(
            "complete",
            {"model": "glm-4.6", "messages": user('[[sim:tool=tides args={"a": 1}]]'), "tools": [TIDES]},
        )
        (call,) = answer.structured["message"]["tool_calls"]
        assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("tides", {"a": 1})
        assert answer.structured["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": user("?") * 1001}, "messages"),
        ({"messages": user([{"type": "input_audio", "input_audio": {}}])}, "messages.0.content"),
        ({"messages": user("?"), "tools": [WEATHER, WEATHER]}, "tools"),
        ({"messages": user("?"), "tool_choice": "required"}, "tool_choice"),
        ({"messages": user("?"), "temperature": 1.5, "model": "glm-4.6"}, "temperature"),
        ({"messages": user("?"), "response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"messages": user("?"), "fallback": ["glm-4.6"] * 9}, "fallback"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_wrong_fields_are_named(arguments: dict[str, Any], field: str) -> None:
    """The error has the path of the field, and nothing is sent."""
    async with daemon_under_test() as daemon:
        with pytest.raises(InvalidArgumentsError) as failure:
            await daemon.client.call("complete", arguments)
        assert any(name.startswith(field) for name in (failure.value.details or {})["fields"]), failure.value.details
        assert not [request for request in daemon.simulator.log if request.operation == "chat"]
