"""``kimi_intent_analysis``: a request becomes data, by one question to a cheap model."""

import json
from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError, ProviderError, ServiceUnavailableError
from toold.tools import load_registry
from toold.tools.builtin.vendor.kimi_intent_analysis import TOOLS, Intent, intent_schema

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import House, OpenHouse

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


async def test_a_request_is_read_in_one_completion(house: "House") -> None:
    """The fields are in ``structured``; the model is Kimi's cheapest, and the schema is enforced."""
    result = await house.call(ANALYSE, prompt=saying(INTENT), context="It ran yesterday.")
    assert house.asked == {"kimi chat": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert {name: data[name] for name in INTENT} == INTENT
    assert data["model_choice_reason"].startswith("it is the cheapest")
    assert "use debug" in result.text
    assert house.last["response_format"]["json_schema"]["schema"] == intent_schema()
    assert "It ran yesterday." in house.last["messages"][-1]["content"]


async def test_the_model_that_is_named_is_asked(house: "House") -> None:
    """Whatever it costs."""
    await house.call(ANALYSE, prompt=saying(INTENT), model="kimi-k2.6")
    assert house.last["model"] == "kimi-k2.6"


def test_the_schema_is_one_that_kimi_takes() -> None:
    """A type everywhere, no references, nothing optional, and the tools by their names."""
    made = intent_schema()
    assert set(made["required"]) == set(made["properties"]) == set(Intent.model_fields)
    assert all("type" in field and "$ref" not in str(field) for field in made["properties"].values())
    assert made["properties"]["suggested_tool"]["enum"] == list(TOOLS)


def test_what_can_be_suggested_exists() -> None:
    """Every name is a tool's."""
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
async def test_an_answer_that_is_none_is_an_error(house: "House", answer: Any, says: str) -> None:
    """It was made and paid for, and is not asked for again unasked."""
    error = await house.fail(ANALYSE, prompt=saying(answer) if isinstance(answer, dict) else f"[[sim:length]] {answer}")
    assert isinstance(error, ProviderError)
    assert says in error.message
    assert error.executed == "yes"
    assert house.asked == {"kimi chat": 1}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "prompt is missing; it should be a string"),
        ({"prompt": ""}, "prompt should have at least 1 character"),
        ({"prompt": "x", "context": 1}, "context should be a string, not 1"),
        ({"prompt": "x", "model": "glm-4.6"}, "glm-4.6 is a glm model; the call requires kimi"),
        ({"prompt": "x", "model": 1}, "model should be a string, not 1"),
        ({"prompt": "x", "use_websearch": True}, "use_websearch is not an argument"),
    ],
)
async def test_wrong_arguments_are_told(house: "House", arguments: dict[str, Any], says: str) -> None:
    """Before a vendor is asked."""
    error = await house.refuse(ANALYSE, **arguments)
    assert isinstance(error, InvalidArgumentsError)
    assert says in error.message


async def test_how_it_fails(house: "House") -> None:
    """Down, out of time, cancelled."""
    await house.fails_well("kimi", "chat", ANALYSE, prompt="Why?")


async def test_without_a_key_it_says_which(open_house: "OpenHouse") -> None:
    """It is listed all the same."""
    error = await (await open_house(KIMI_API_KEY="")).refuse(ANALYSE, prompt="Why?")
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
