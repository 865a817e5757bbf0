"""``toold providers``: list, check and models, against the simulator."""

import json
from pathlib import Path
from typing import Any

import pytest

SETTINGS = """
[providers.work]
type = "openai"
models = ["gpt-5*"]
api_key = { env = "WORK_KEY" }
[providers.local]
type = "ollama"
base_url = "http://127.0.0.1:1/v1"
default_model = "qwen3:8b"
[models."local/qwen3:8b"]
context_window = 40_000
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A toold.toml with two providers."""
    (tmp_path / "toold.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORK_KEY", raising=False)


def test_the_list_says_what_is_configured(run: Any, configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each key is or why it is missing, and how many models are known; the key is not shown."""
    lines = {line.split()[0]: line for line in run("providers", "list").stdout.splitlines()}
    assert "no key" in lines["work"]
    assert "the variable WORK_KEY is not set" in lines["work"]
    assert "not needed" in lines["local"]
    assert "qwen3:8b" in lines["local"]
    monkeypatch.setenv("WORK_KEY", "sk-secret-of-the-test")
    result = run("providers", "list", "--json")
    (work,) = [row for row in json.loads(result.stdout) if row["name"] == "work"]
    assert (work["available"], work["key"]) == (True, "WORK_KEY")
    assert work["known_models"] > 3
    assert "sk-secret" not in result.output


def test_models_are_listed_with_what_is_known(run: Any, configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The allowed ones of the vendor's list and of the catalog; what is unknown is empty."""
    monkeypatch.setenv("TOOLD_SIMULATE", "true")
    models = {row["id"]: row for row in json.loads(run("providers", "models", "work", "--json").stdout)}
    assert models["work/gpt-5.5"]["context_window"] == 1_050_000
    assert "work/gpt-4.1" not in models
    table = run("providers", "models", "local").stdout
    assert "local/qwen3:8b" in table
    assert "40,000" in table
    assert "A local simulator answered" in table


def test_a_check_completes_only_on_request(run: Any, configured: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failing check is exit code 1; an unknown provider or model is an error that suggests one."""
    monkeypatch.setenv("TOOLD_SIMULATE", "true")
    checked = run("providers", "check", "local")
    assert (checked.exit_code, "completion" in checked.stdout) == (0, False)
    assert "local models: the vendor lists 2" in checked.stdout
    completed = run("providers", "check", "local", "--complete")
    assert "local/qwen3:8b answered" in completed.stdout
    assert "simulated, free" in completed.stdout
    refused = run("providers", "check", "work", "--model", "gpt-4.1")
    assert (refused.exit_code, "does not allow work/gpt-4.1" in refused.stdout) == (1, True)
    wrong = run("providers", "check", "locla")
    assert (wrong.exit_code, "did you mean 'local'?" in wrong.stderr) == (2, True)


def test_a_vendor_that_cannot_be_reached_fails_the_check(run: Any, configured: None) -> None:
    """Nothing listens at its address."""
    result = run("providers", "check", "local")
    assert result.exit_code == 1
    assert "fail  local models: local cannot be reached" in result.stdout
    assert run("providers", "models", "local").exit_code == 1
    missing = run("providers", "check", "work")
    assert (missing.exit_code, "WORK_KEY is not set" in missing.stdout) == (1, True)
