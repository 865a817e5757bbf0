"""``kimi_capture_headers`` shows Kimi's response headers without account identifiers."""

from typing import TYPE_CHECKING, Any

from toold.protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError
from toold.providers.simulator import SIMULATOR_KEY

if TYPE_CHECKING:
    from tests.tools.builtin.vendor.conftest import Harness, OpenHarness

CAPTURE = "kimi_capture_headers"


async def test_headers_and_cached_tokens_are_shown(harness: "Harness") -> None:
    """One small completion returns the request's fields, the response headers and the cached tokens."""
    result = await harness.call(CAPTURE, system="You are terse. " * 20, cache_key="thread-7", model="moonshot-v1-32k")
    assert harness.request_counts == {"kimi chat": 1}
    data = result.structured
    assert isinstance(data, dict)
    assert data["request"] == {
        "model": "moonshot-v1-32k", "stream": False, "max_completion_tokens": 64, "prompt_cache_key": "thread-7",
    }  # fmt: skip
    assert harness.last["prompt_cache_key"] == "thread-7"
    assert data["headers"]["msh-context-cache-token-saved"] == str(data["cached_tokens"])
    assert 0 < data["cached_tokens"] < data["input_tokens"]
    assert "msh-context-cache-token-saved: " in result.text
    assert f"{data['cached_tokens']} of {data['input_tokens']} input tokens" in result.text


async def test_messages_replace_the_prompt(harness: "Harness") -> None:
    """A whole conversation is sent as it is."""
    messages = [{"role": "system", "content": "Be terse."}, {"role": "user", "content": "Why?"}]
    await harness.call(CAPTURE, messages=messages, temperature=0.5, model="moonshot-v1-32k")
    assert (harness.last["messages"], harness.last["temperature"]) == (messages, 0.5)


async def test_key_and_account_are_hidden(harness: "Harness") -> None:
    """The account header is shown without its value, and the key does not occur."""
    result = await harness.call(CAPTURE)
    data = result.structured
    assert isinstance(data, dict)
    assert data["headers"]["msh-uid"] == "…"
    assert SIMULATOR_KEY not in str(data) + result.text
    assert "sim-account" not in str(data) + result.text


INVALID_ARGUMENTS: list[tuple[dict[str, Any], str]] = [
    ({"prompt": ""}, "prompt should have at least 1 character"),
    ({"prompt": "a", "messages": "b"}, "give messages, or prompt and system"),
    ({"system": 1}, "system should be a string, not 1"),
    ({"cache_key": ""}, "cache_key should have at least 1 character"),
    ({"model": "glm-4.6"}, "glm-4.6 is a glm model; the call requires kimi"),
    ({"messages": []}, "messages should have at least 1 item"),
]


async def test_invalid_arguments_are_refused(harness: "Harness") -> None:
    """Invalid arguments are refused before any request."""
    for arguments, says in INVALID_ARGUMENTS:
        error = await harness.refuse(CAPTURE, **arguments)
        assert isinstance(error, InvalidArgumentsError), arguments
        assert says in error.message


async def test_outage_timeout_and_cancel(harness: "Harness") -> None:
    """An outage, a timeout and a cancel each cause exactly one request."""
    await harness.check_failures("kimi", "chat", CAPTURE)


async def test_missing_key_is_named(open_harness: "OpenHarness") -> None:
    """Without a key the error names the setting."""
    error = await (await open_harness(KIMI_API_KEY="")).refuse(CAPTURE)
    assert isinstance(error, ServiceUnavailableError)
    assert "KIMI_API_KEY" in error.message
