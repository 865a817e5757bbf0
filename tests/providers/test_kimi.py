"""What is Kimi's own: its form of a question, and an SDK that is meant for another vendor."""

from typing import TYPE_CHECKING

import pytest
from toold.protocol.errors import InvalidArgumentsError
from toold.providers import CompletionRequest, ImagePart, Message
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
