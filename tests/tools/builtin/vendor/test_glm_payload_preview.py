"""``glm_payload_preview`` returns the request body without sending it."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import (
    ContextLengthExceededError,
    InvalidArgumentsError,
    NotFoundError,
    ServiceUnavailableError,
)

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

PREVIEW = "glm_payload_preview"
FUNCTION = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}


@pytest.mark.parametrize(
    "asked",
    [
        {"prompt": "Why?"},
        {"prompt": "Why?", "system": "Be brief.", "temperature": 0.3, "max_tokens": 9, "thinking": False},
        {"prompt": "Why?", "files": ["a.txt"], "model": "glm-4.5-air"},
        {"prompt": "Why?", "images": ["a.png"], "model": "glm-4.6v"},
        {"prompt": "Why?", "web_search": True, "thinking": "max"},
    ],
    ids=" ".join,
)
async def test_preview_equals_the_body_that_chat_sends(harness: "Harness", asked: dict[str, Any]) -> None:
    """The preview equals the body that ``chat`` sends for the same arguments, and sends no request itself."""
    harness.write("a.txt", "alpha")
    harness.write("a.png", b"\x89PNG\r\n\x1a\n")
    body = (await harness.data(PREVIEW, **asked))["body"]
    assert not harness.request_counts
    await harness.call("chat", **{"model": "glm-4.6", **asked})
    # A new conversation has no earlier turns. The client of these tests streams, so chat streams too.
    assert body | {"stream": True} == harness.last


async def test_functions_are_included_unchanged(harness: "Harness") -> None:
    """Functions have the vendor's format, and ``stream`` is included on request."""
    body = (await harness.data(PREVIEW, prompt="?", tools=[FUNCTION], stream=True))["body"]
    assert body["tools"] == [FUNCTION]
    assert body["stream"] is True


async def test_a_folder_stands_for_its_text_files(harness: "Harness") -> None:
    """The body has them, and the data says what was taken."""
    harness.write("lib/a.txt", "alpha")
    data = await harness.data(PREVIEW, prompt="?", files=["lib"])
    assert "alpha" in data["body"]["messages"][0]["content"]
    assert data["folders"][0]["files"] == ["a.txt"]


async def test_omitted_files_are_reported(harness: "Harness") -> None:
    """As in ``chat``, files that do not fit are omitted and reported, or the request is refused."""
    harness.write("a.txt", "word " * 1000)
    harness.write("long.txt", "word " * 200_000)
    data = await harness.data(PREVIEW, prompt="?", model="glm-4-32b-0414-128k", files=["a.txt", "long.txt"])
    assert [part["what"] for part in data["omitted"]] == ["long.txt"]
    error = await harness.refuse(PREVIEW, prompt="?", model="glm-4-32b-0414-128k", files=["long.txt"])
    assert isinstance(error, ContextLengthExceededError)


async def test_auto_reports_the_reason(harness: "Harness") -> None:
    """``auto`` chooses among GLM's models and reports the reason."""
    data = await harness.data(PREVIEW, prompt="?", model="auto")
    assert data["body"]["model"].startswith("glm-")
    assert data["model_choice_reason"].startswith("it is the cheapest")


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "prompt should have at least 1 character"),
    ({"system": 1}, "system should be a string, not 1"),
    ({"model": "kimi-k2.6"}, "kimi-k2.6 is a kimi model; the call requires glm"),
    ({"model": "glm-9"}, "Unknown model"),
    ({"files": 7}, "files should be an array, not 7"),
    ({"images": ["a.txt"]}, "images.0: 'a.txt' is not a PNG"),
    ({"images": ["https://example.com/a.png"], "model": "glm-4.6"}, "images: glm-4.6 does not accept images"),
    ({"tools": [{}]}, "tools.0.function is missing"),
    ({"tools": [{"function": {"name": "a b"}}]}, "tools.0.function.name should match pattern"),
    ({"tools": [FUNCTION, FUNCTION]}, "two functions are named 'look'"),
    ({"tools": [FUNCTION], "web_search": True}, "GLM accepts web search or functions, not both"),
    ({"web_search": 1}, "web_search should be true or false, not 1"),
    (
        {"thinking": "minimal", "model": "glm-5.3"},
        "thinking: glm-5.3 supports thinking low, high or max, not minimal",
    ),
    ({"temperature": 2}, "temperature should be less than or equal to 1, not 2"),
    ({"max_tokens": 0}, "max_tokens should be greater than or equal to 1, not 0"),
    ({"max_tokens": 10_000_000}, "max_tokens: no available model can answer with 10,000,000 tokens"),
    ({"stream": 1}, "stream should be true or false, not 1"),
    ({"tools": [FUNCTION], "tool_choice": "required"}, "GLM decides whether to call a function"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments raise an error, as in ``chat``."""
    harness.write("a.txt", "alpha")
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(PREVIEW, **{"prompt": "?", **arguments})
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_missing_file_is_refused(harness: "Harness") -> None:
    """The error names the position of the file."""
    error = await harness.refuse(PREVIEW, prompt="?", files=["none.txt"])
    assert isinstance(error, NotFoundError)
    assert "files.0" in error.message


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """The body contains values of the configured vendor, so a key is required."""
    error = await (await open_harness(GLM_API_KEY="")).refuse(PREVIEW, prompt="?")
    assert isinstance(error, ServiceUnavailableError)
    assert "GLM_API_KEY" in error.message
