"""``kimi_intent_analysis`` classifies a request by one completion of a cheap model."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ProviderError, ServiceUnavailableError
from toold.tools import load_registry
from toold.tools.builtin.vendor.kimi_intent_analysis import TOOLS, Intent, intent_schema

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

ANALYSE = "kimi_intent_analysis"
INTENT = {
    "intent": "Find out why the test hangs.",
    "domain": "testing",
    "complexity": "moderate",
    "confidence": "high",
    "needs_files": True,
    "needs_web": False,
    "needs_images": False,
    "suggested_tool": "debug",
    "thinking": "medium",
}


def saying(intent: Any) -> str:
    return f"Why does it hang? [[sim:json={json.dumps(intent)}]]"


async def test_request_is_classified_by_one_completion(harness: "Harness") -> None:
    """The fields are in ``structured``. The cheapest Kimi model answers, and the schema is sent with the request."""
    result = await harness.call(ANALYSE, prompt=saying(INTENT), context="It ran yesterday.")
    assert harness.request_counts == {"kimi chat": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert {name: data[name] for name in INTENT} == INTENT
    assert data["model_choice_reason"].startswith("it is the cheapest")
    assert "use debug" in result.text
    assert harness.last["response_format"]["json_schema"]["schema"] == intent_schema()
    assert "It ran yesterday." in harness.last["messages"][-1]["content"]


async def test_named_model_is_used(harness: "Harness") -> None:
    """A named model is used regardless of its price."""
    await harness.call(ANALYSE, prompt=saying(INTENT), model="kimi-k2.6")
    assert harness.last["model"] == "kimi-k2.6"


def test_schema_meets_the_restrictions_of_kimi() -> None:
    """Every field has a type, is required and has no references. The suggested tools are an enum."""
    result = intent_schema()
    assert set(result["required"]) == set(result["properties"]) == set(Intent.model_fields)
    assert all("type" in field and "$ref" not in str(field) for field in result["properties"].values())
    assert result["properties"]["suggested_tool"]["enum"] == list(TOOLS)


def test_suggested_tools_exist() -> None:
    """Every suggested name is the name of a tool."""
    assert set(TOOLS) <= {tool.name for tool in load_registry().tools}


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("I think so.", "Invalid JSON"),
        ({**INTENT, "complexity": "odd"}, "complexity: Input should be 'simple', 'moderate' or 'complex'"),
        ({**INTENT, "suggested_tool": "sim_effect"}, "suggested an unknown tool"),
        ({"intent": "x"}, "domain: Field required"),
    ],
)
async def test_invalid_answer_is_an_error(harness: "Harness", answer: Any, says: str) -> None:
    """The error has executed ``yes``, and the request is not repeated."""
    error = await harness.fail(
        ANALYSE, prompt=saying(answer) if isinstance(answer, dict) else f"[[sim:length]] {answer}"
    )
    assert isinstance(error, ProviderError)
    assert says in error.message
    assert error.executed == "yes"
    assert harness.request_counts == {"kimi chat": 1}


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({}, "prompt is missing; it should be a string"),
    ({"prompt": ""}, "prompt should have at least 1 character"),
    ({"prompt": "x", "context": 1}, "context should be a string, not 1"),
    ({"prompt": "x", "model": "glm-4.6"}, "glm-4.6 is a glm model; the call requires kimi"),
    ({"prompt": "x", "model": 1}, "model should be a string, not 1"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(ANALYSE, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    await harness.check_failures("kimi", "chat", ANALYSE, prompt="Why?")


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    error = await (await open_harness(KIMI_API_KEY="")).refuse(ANALYSE, prompt="Why?")
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
