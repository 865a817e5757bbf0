"""``toold prompts``."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a toold.toml names a server that is not there and a folder with one prompt."""
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts/eo-writer.md").write_text("---\nmodel: glm-4.6\n---\nWrite about {{topic}}.\n")
    settings = '[prompts]\nfolder = "texts"\nphoenix = { url = "http://127.0.0.1:1", allow_private = true }\n'
    (tmp_path / "toold.toml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_prompt_is_shown_with_its_source(run: Any, directory: Path) -> None:
    """The text is the output; source, version, model and warnings are notes, and nothing is written."""
    result = run("prompts", "show", "eo-writer", "topic=law = order")
    assert (result.exit_code, result.stdout) == (0, "Write about law = order.\n")
    source, warning = result.stderr.splitlines()
    assert source.startswith("eo-writer: file, version ")
    assert source.endswith(", model glm-4.6")
    assert warning == "eo-writer: phoenix: 127.0.0.1 cannot be reached"
    as_json = json.loads(run("prompts", "show", "x", "topic=a", "--role", "eo-writer", "--json").stdout)
    assert (as_json["text"], as_json["source"], len(as_json["warnings"])) == ("Write about a.", "file", 1)


def test_a_prompt_that_cannot_be_shown(run: Any, directory: Path) -> None:
    """No prompt and a missing variable are exit code 1 with the reason, a wrong command line is 2."""
    missing = run("prompts", "show", "reader")
    assert missing.exit_code == 1
    assert "phoenix: 127.0.0.1 cannot be reached" in missing.stderr
    unfilled = run("prompts", "show", "eo-writer")
    assert unfilled.exit_code == 1
    assert "the variable 'topic', which has no value" in unfilled.stderr
    assert run("prompts", "show", "eo-writer", "law").exit_code == 2
