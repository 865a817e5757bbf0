"""``toold init``, and the file that it writes."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING

import pytest
from toold.cli.settings_file import template
from toold.daemon import Settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

EXAMPLES = {
    *("kimi_api_key", "glm_api_key", "default_model", "kimi_allowed_models", "locale", "daily_budget"),
    *("workspace", "workflow_dir", "pipeline_dir"),
}
"""Settings of the template whose values are examples, because they have no default or a computed one."""
TABLES = {
    "sources",
    "clink",
    "deploy",
    "hooks",
    "knowledge",
    "prompts",
    "quotas",
    "registry",
    "otel",
    "user_credentials",
    "zenml",
}
"""Tables of the template, which a file without them does not have."""


def test_the_file_changes_nothing_until_it_is_edited(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is private, has no setting, and is never overwritten."""
    monkeypatch.chdir(tmp_path)
    result = run("init")
    assert result.exit_code == 0, result.output
    file = tmp_path / "toold.toml"
    assert (file.stat().st_mode & 0o777, tomllib.loads(file.read_text())) == (0o600, {})
    file.write_text("max_running = 2\n")
    assert (run("init").exit_code, file.read_text()) == (1, "max_running = 2\n")
    assert "toold serve --config" in run("init", "other.toml").output


def test_every_commented_line_is_a_valid_setting(tmp_path: Path) -> None:
    """Without the #, all lines together load, and all but the examples have the defaults."""
    for name in ("workflows", "pipelines"):
        (tmp_path / name).mkdir()
    text = re.sub(r"(?m)^#(?=[a-z_]+ = |\[)", "", template()).replace("~/work", ".").replace("sk-…", "sk-1234567890")
    text = text.replace('glm_api_key = "…"', 'glm_api_key = "abcdefgh12345678"')
    (tmp_path / "toold.toml").write_text(text)
    table = tomllib.loads(text)
    assert len(table) > 20
    loaded, defaults = (
        load_settings({}, env={}, cwd=tmp_path),
        load_settings({"config": "/dev/null"}, env={}, cwd=tmp_path),
    )
    for name in table.keys() - EXAMPLES - TABLES:
        assert getattr(loaded, name) == getattr(defaults, name), name
    assert table.keys() <= Settings.model_fields.keys()
    assert set(loaded.sources) == {"crm", "files", "legal", "tracker"}
