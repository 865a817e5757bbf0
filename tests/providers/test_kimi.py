"""Kimi specifics: its request format, and its use of OpenAI's SDK."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import CompletionRequest, ImagePart, JsonFormat, Message, WebSearch
from toold.providers.kimi import kimi_body

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_kimi_limits_completion_tokens_and_requests_usage(bench: "Bench") -> None:
    """``max_completion_tokens`` limits the answer, and a stream requests its usage."""
    request = CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),), max_tokens=7)
    assert kimi_body(request, stream=True)["max_completion_tokens"] == 7
    assert kimi_body(request, stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in kimi_body(request, stream=False)


async def test_kimi_refuses_image_urls(bench: "Bench") -> None:
    """Moonshot does not fetch images. An https: image is refused before it is sent, and the error names the
    alternative.
    """
    picture = Message("user", (ImagePart("https://example.test/a.png"),))
    with pytest.raises(InvalidArgumentsError, match="attach the image itself"):
        kimi_body(CompletionRequest(bench.model("kimi", "full"), (picture,)), stream=False)


async def test_openai_environment_is_not_sent_to_kimi(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenAI keys and organisations from the environment are not sent to Moonshot."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-elsewhere")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-elsewhere")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-elsewhere")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/elsewhere")
    provider = bench.open("kimi", "openai", limit=7)
    await provider.complete(CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),)), timeout_s=30)
    headers = bench.simulator.log[-1].headers
    assert not [value for value in headers.values() if "elsewhere" in value]


async def test_kimi_web_search_is_a_built_in_tool_without_thinking(bench: "Bench") -> None:
    """The tool has only a name, and thinking is switched off with it."""
    request = CompletionRequest(bench.model("kimi", "full"), (Message("user", "News?"),), tools=(WebSearch(),))
    body = kimi_body(request, stream=False)
    assert body["tools"] == [{"type": "builtin_function", "function": {"name": "$web_search"}}]
    assert body["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"tools": (WebSearch(count=3),)}, "has no settings"),
        ({"tools": (WebSearch(),), "thinking": True}, "cannot be used with thinking"),
        ({"tools": (WebSearch(),), "thinking": "max"}, "cannot be used with thinking"),
    ],
)
async def test_unsupported_kimi_web_search_is_refused(bench: "Bench", fields: Any, words: str) -> None:
    """Settings and thinking are refused, because Kimi would ignore them or answer with a less clear error."""
    request = CompletionRequest(bench.model("kimi", "full"), (Message("user", "News?"),), **fields)
    with pytest.raises(InvalidArgumentsError, match=words):
        kimi_body(request, stream=False)


async def test_kimi_body_has_schema_and_cache_key(bench: "Bench") -> None:
    """Schema and cache key are sent under the vendor's field names."""
    schema = {"type": "object", "properties": {}}
    request = CompletionRequest(
        bench.model("kimi", "full"),
        (Message("user", "Hi."),),
        response_format=JsonFormat(schema, "verdict"),
        cache_key="conversation-1",
    )
    body = kimi_body(request, stream=False)
    assert body["prompt_cache_key"] == "conversation-1"
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": schema},
    }
    assert [message["role"] for message in body["messages"]] == ["user"]
