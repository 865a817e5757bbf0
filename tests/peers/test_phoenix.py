"""A real Phoenix as a server of prompts."""

from pathlib import Path
from typing import Any

import pytest
from tests.peers.conftest import Phoenix
from toold.prompts import PromptChain, read_prompts
from toold.tools import PromptError, PromptQuery

pytestmark = [pytest.mark.large_peer, pytest.mark.timeout(600)]

ROLE = PromptQuery("writer", ref="eo-writer", variables={"tone": "calm"})


@pytest.fixture
async def chain(phoenix: Phoenix, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A chain that asks Phoenix, and then files."""
    monkeypatch.setenv("TEST_PHOENIX_KEY", phoenix.key)
    server = {"url": phoenix.url, "key": {"env": "TEST_PHOENIX_KEY"}, "allow_private": True, "timeout_s": 60}
    chain = PromptChain(read_prompts({"phoenix": server, "folder": tmp_path}), tmp_path / "kept")
    yield chain
    await chain.close()


def publish(phoenix: Phoenix, content: Any, template_format: str = "MUSTACHE", name: str = "eo-writer") -> str:
    """Create a version of the prompt, with a question after the system message, and return its id."""
    question = {"role": "user", "content": [{"type": "text", "text": "{{question}}"}]}
    version = {
        "model_provider": "OPENAI",
        "model_name": "kimi-k2",
        "template_type": "CHAT",
        "template_format": template_format,
        "template": {"type": "chat", "messages": [{"role": "system", "content": content}, question]},
        "invocation_parameters": {"type": "openai", "openai": {}},
    }
    created = phoenix.post("prompts", {"prompt": {"name": name}, "version": version})
    return str(created["data"]["id"])


async def test_by_tag_and_by_latest(phoenix: Phoenix, chain: PromptChain) -> None:
    """Without the tag the latest version is used, also after an edit; with it the tagged one, in each form of content
    and format."""
    first = publish(phoenix, "Be {{tone}}.")
    prompt = await chain.resolve(ROLE)
    assert (prompt.text, prompt.source, prompt.version) == ("Be calm.", "phoenix", first)
    assert (prompt.model, prompt.warnings) == ("kimi-k2", ())
    second = publish(
        phoenix, [{"type": "text", "text": "Stay {tone}, "}, {"type": "text", "text": "{{}}."}], "F_STRING"
    )
    latest = await chain.resolve(ROLE)
    assert (latest.text, latest.version) == ("Stay calm, {}.", second)
    phoenix.post(f"prompt_versions/{first}/tags", {"name": "production"})
    assert (await chain.resolve(ROLE)).version == first
    untagged = PromptQuery("writer", ref="eo-writer", tag="staging", variables={"tone": "calm"})
    assert (await chain.resolve(untagged)).version == second


async def test_missing_names_and_wrong_keys(
    phoenix: Phoenix, chain: PromptChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that Phoenix does not have falls through silently; one that it does not allow, and a wrong key, with a
    warning; the last known good prompt is used with the wrong key."""
    (tmp_path / "writer.txt").write_text("from a file")
    missing = await chain.resolve(PromptQuery("writer", ref="missing"))
    invalid = await chain.resolve(PromptQuery("writer", ref="In Valid"))
    assert (missing.source, missing.warnings, invalid.source) == ("file", (), "file")
    assert "HTTP 422: it refuses the name or the tag" in invalid.warnings[0]
    publish(phoenix, "kept", name="eo-kept")
    kept = PromptQuery("reader", ref="eo-kept")
    await chain.resolve(kept)
    monkeypatch.setenv("TEST_PHOENIX_KEY", "a-wrong-key")
    prompt = await chain.resolve(kept)
    assert prompt.text == "kept"
    assert prompt.warnings[0] == "phoenix: it answered HTTP 401: it refuses the key"
    with pytest.raises(PromptError, match="HTTP 401"):
        await chain.resolve(PromptQuery("reader", ref="eo-never"))
