"""What is Kimi's own: its form of a question, and an SDK that is meant for another vendor."""

from typing import TYPE_CHECKING, Any

import pytest
from toold.protocol.error_codes import InvalidArgumentsError
from toold.providers import CompletionRequest, ImagePart, JsonFormat, Message, WebSearch
from toold.providers.kimi import kimi_body

if TYPE_CHECKING:
    from tests.providers.conftest import Bench

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_kimi_has_its_own_word_for_the_bound_and_is_asked_for_usage(bench: "Bench") -> None:
    """``max_completion_tokens`` bounds the answer; a stream has to be asked for its usage."""
    asked = CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),), max_tokens=7)
    assert kimi_body(asked, stream=True)["max_completion_tokens"] == 7
    assert kimi_body(asked, stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in kimi_body(asked, stream=False)


async def test_kimi_takes_no_addresses_of_images(bench: "Bench") -> None:
    """Moonshot fetches nothing: an https: image is refused before it is sent, and the error says what to do."""
    picture = Message("user", (ImagePart("https://example.test/a.png"),))
    with pytest.raises(InvalidArgumentsError, match="attach the image itself"):
        kimi_body(CompletionRequest(bench.model("kimi", "full"), (picture,)), stream=False)


async def test_the_sdks_environment_stays_at_home(bench: "Bench", monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and organisations of OpenAI that lie in the environment are not sent to Moonshot."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-elsewhere")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-elsewhere")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-elsewhere")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/elsewhere")
    provider = bench.open("kimi", "openai", limit=7)
    await provider.complete(CompletionRequest(bench.model("kimi"), (Message("user", "Hi."),)), timeout_s=30)
    headers = bench.simulator.log[-1].headers
    assert not [value for value in headers.values() if "elsewhere" in value]


async def test_kimis_web_search_is_a_built_in_tool_without_thinking(bench: "Bench") -> None:
    """It has a name alone, and thinking, which is on unless switched off, is switched off with it."""
    asked = CompletionRequest(bench.model("kimi", "full"), (Message("user", "News?"),), tools=(WebSearch(),))
    body = kimi_body(asked, stream=False)
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
async def test_what_kimis_web_search_cannot_do_is_refused(bench: "Bench", fields: Any, words: str) -> None:
    """Settings and thinking would be ignored, or refused with less clear words."""
    asked = CompletionRequest(bench.model("kimi", "full"), (Message("user", "News?"),), **fields)
    with pytest.raises(InvalidArgumentsError, match=words):
        kimi_body(asked, stream=False)


async def test_kimi_takes_a_schema_and_a_cache_key(bench: "Bench") -> None:
    """Both under the vendor's names."""
    schema = {"type": "object", "properties": {}}
    asked = CompletionRequest(
        bench.model("kimi", "full"),
        (Message("user", "Hi."),),
        response_format=JsonFormat(schema, "verdict"),
        cache_key="conversation-1",
    )
    body = kimi_body(asked, stream=False)
    assert body["prompt_cache_key"] == "conversation-1"
    assert body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "verdict", "strict": True, "schema": schema},
    }
    assert [message["role"] for message in body["messages"]] == ["user"]
