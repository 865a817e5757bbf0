"""The last known good prompts on disk."""

import os
from pathlib import Path

import pytest
from toold.prompts import kept_prompts
from toold.prompts.kept_prompts import KeptPrompts, PromptAddress
from toold.prompts.server_answers import StoredPrompt

PROMPT = StoredPrompt("text", "v1", "mustache", "model", {"tone": "calm"})


def test_the_oldest_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit, those that were good the longest ago go; the same name with another tag is another prompt."""
    monkeypatch.setattr(kept_prompts, "MAX_KEPT_PROMPTS", 3)
    kept = KeptPrompts(tmp_path / "kept")
    addresses = [PromptAddress("phoenix", "https://a.example", "a", tag) for tag in ("1", "2", "3", "4")]
    for address in addresses[:3]:
        kept.keep(address, PROMPT)
        for file in (tmp_path / "kept").iterdir():
            os.utime(file, (file.stat().st_mtime - 10, file.stat().st_mtime - 10))
    kept.keep(addresses[0], PROMPT)  # good again: the second is the oldest now
    kept.keep(addresses[3], PROMPT)
    loaded = [kept.load(address) for address in addresses]
    assert [prompt is not None for prompt in loaded] == [True, False, True, True]
    assert loaded[0] is not None
    assert loaded[0].prompt == PROMPT


def test_a_prompt_is_replaced(tmp_path: Path) -> None:
    """There is one file per address, with the last prompt, and no unfinished one."""
    kept = KeptPrompts(tmp_path)
    address = PromptAddress("registry", "https://a.example", "a", "")
    kept.keep(address, PROMPT)
    kept.keep(address, StoredPrompt("other", "v2"))
    loaded = kept.load(address)
    assert loaded is not None
    assert (loaded.prompt, len(list(tmp_path.iterdir()))) == (StoredPrompt("other", "v2"), 1)
