"""``toold import``."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest
from toold.daemon import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

SECRET = "a-token-that-nobody-may-see"
SERVERS = {
    "git hub": {"command": "npx", "args": ["pkg"], "env": {"TOKEN": SECRET, "LOG": "debug"}},
    "remote": {"url": "https://h.example/mcp", "headers": {"Authorization": f"Bearer {SECRET}"}},
    "folder": {"command": "x", "args": ["${workspaceFolder}"]},
}


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Cursor's file, with comments."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text("// mine\n" + json.dumps({"mcpServers": SERVERS}))
    return path


def test_the_servers_of_an_editor_become_sources(run: Run, file: Path, bare_environment: Path) -> None:
    """Into the file that an editor's daemon reads; secrets into private files, and neither is shown nor copied else."""
    result = run("import", "cursor", stdin="y\n")
    assert result.exit_code == 0, result.output
    assert SECRET not in result.output
    assert "skipped: folder: its argument 1 depends on the editor" in result.output
    settings_file = bare_environment / "toold.toml"
    assert SECRET not in settings_file.read_text()
    sources = load_settings({"config": str(settings_file)}, env={}, cwd=file.parent).sources
    assert list(sources) == ["git-hub", "remote"]
    assert [secret.read_header_value() for source in sources.values() for secret in source.secrets] == [SECRET] * 2
    modes = {path.stat().st_mode & 0o777 for path in (bare_environment / "secrets").iterdir()}
    assert modes == {0o600}
    assert (bare_environment.stat().st_mode & 0o777, (bare_environment / "secrets").stat().st_mode & 0o777) == (
        0o700,
        0o700,
    )


def test_an_editor_whose_only_server_is_toold(run: Run, file: Path, bare_environment: Path) -> None:
    """There is nothing to import, which is a failure as for a file without servers."""
    file.write_text(json.dumps({"mcpServers": {"toold": {"command": "toold", "args": ["mcp"]}}}))
    result = run("import", str(file), "--yes")
    assert (result.exit_code, "skipped: toold: it is toold itself" in result.output) == (1, True)
    assert not (bare_environment / "toold.toml").exists()


def test_a_second_import_changes_nothing(run: Run, file: Path, bare_environment: Path) -> None:
    """What has been imported is recognized; another source of the same name stays as it is."""
    run("import", str(file), "--yes")
    settings_file = bare_environment / "toold.toml"
    before = settings_file.read_text()
    result = run("import", str(file), "--yes")
    assert "skipped: git hub: it has been imported already" in result.output
    assert (result.exit_code, "Nothing to import." in result.output) == (0, True)
    file.write_text(json.dumps({"mcpServers": {"remote": {"url": "https://other.example/mcp"}}}))
    assert "another source has this name" in run("import", str(file), "--yes").output
    assert settings_file.read_text() == before


@pytest.mark.parametrize(("arguments", "stdin", "code"), [(["--print"], None, 0), ([], "n\n", 1)])
def test_nothing_is_written_without_confirmation(
    run: Run, file: Path, bare_environment: Path, arguments: list[str], stdin: str | None, code: int
) -> None:
    """The change is shown either way."""
    result = run("import", "cursor", *arguments, stdin=stdin)
    assert result.exit_code == code
    assert "+[sources.git-hub]" in result.output
    assert not bare_environment.exists()


def test_a_toml_file_of_an_editor_is_read_too(run: Run, file: Path, bare_environment: Path) -> None:
    """Codex's; the file named by --config changes."""
    (file.parent / "config.toml").write_text('[mcp_servers.docs]\ncommand = "x"\nenv_vars = ["DOCS_KEY"]\n')
    result = run("import", ".cursor/config.toml", "--yes", "--config", "other.toml")
    assert result.exit_code == 0, result.output
    assert "note: docs: needs the variable DOCS_KEY" in result.output
    written = tomllib.loads((file.parent.parent / "other.toml").read_text())
    assert written["sources"]["docs"]["env"] == {"DOCS_KEY": {"env": "DOCS_KEY"}}


@pytest.mark.parametrize(
    ("content", "message"), [("{}", "has no MCP servers"), ("{", "it is not JSON"), (None, "does not exist")]
)
def test_a_file_without_servers_is_refused(run: Run, file: Path, content: str | None, message: str) -> None:
    """With what is wrong with it."""
    file.unlink() if content is None else file.write_text(content)
    result = run("import", "cursor")
    assert (result.exit_code, message in result.stderr) == (1, True)
