"""``toold install``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli.command_settings import toold_program

if TYPE_CHECKING:
    from tests.cli.conftest import Run

OTHER = {"mcpServers": {"other": {"command": "x", "env": {"KEY": "a secret"}}}}


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where Cursor's file is; there is none yet."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path / ".cursor/mcp.json"


def write(file: Path, content: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(content)


def test_a_first_entry(run: Run, file: Path, bare_environment: Path) -> None:
    """The file is made, with the command of this interpreter and the state directory in effect here."""
    result = run("install", "cursor", "--yes", "--toolset", "lean")
    assert result.exit_code == 0, result.output
    program, *rest = toold_program()
    assert json.loads(file.read_text()) == {
        "mcpServers": {
            "toold": {
                "command": program,
                "args": [*rest, "mcp", "--toolset", "lean"],
                "env": {"TOOLD_STATE_DIR": str(bare_environment)},
            }
        }
    }
    again = run("install", "cursor", "--yes", "--toolset", "lean")
    assert again.output.endswith("nothing to do.\n")
    assert again.stderr == ""
    assert "toolset 'lea' is not configured here" in run("install", "cursor", "--print", "--toolset", "lea").stderr


def test_other_entries_stay(run: Run, file: Path) -> None:
    """Other entries stay, a backup is made, and secrets are not shown."""
    write(file, json.dumps(OTHER, indent=2))
    file.chmod(0o600)
    before = file.read_text()
    result = run("install", "cursor", stdin="y\n")
    assert result.exit_code == 0, result.output
    assert "secret" not in result.output
    assert "+" in result.output
    assert json.loads(file.read_text())["mcpServers"]["other"] == OTHER["mcpServers"]["other"]
    assert file.stat().st_mode & 0o777 == 0o600
    assert (file.parent / "mcp.json.bak1").read_text() == before
    assert run("install", "cursor", "--remove", "--yes").exit_code == 0
    assert json.loads(file.read_text()) == OTHER
    assert sorted(one.name for one in file.parent.iterdir()) == ["mcp.json", "mcp.json.bak1", "mcp.json.bak2"]


@pytest.mark.parametrize(("arguments", "stdin"), [(["--print"], None), ([], "n\n"), ([], "")])
def test_nothing_is_written_without_confirmation(run: Run, file: Path, arguments: list[str], stdin: str | None) -> None:
    """With --print, after a no, or without a terminal."""
    write(file, json.dumps(OTHER))
    result = run("install", "cursor", *arguments, stdin=stdin)
    assert result.exit_code == (0 if arguments else 1)
    assert "+" in result.output
    assert [one.name for one in file.parent.iterdir()] == ["mcp.json"]
    assert json.loads(file.read_text()) == OTHER


def test_another_entry_is_shown(run: Run, file: Path) -> None:
    """The old value and the new one."""
    write(file, json.dumps({"mcpServers": {"toold": {"command": "/old/toold"}}}, indent=2))
    result = run("install", "cursor", "--print")
    assert '-      "command": "/old/toold"' in result.output


@pytest.mark.parametrize("content", [b"{nonsense", b"\xff", b"[]"])
def test_a_broken_file_is_not_touched(run: Run, file: Path, content: bytes) -> None:
    """The command says what is wrong, and leaves it to its owner."""
    write(file, "")
    file.write_bytes(content)
    result = run("install", "cursor", "--yes")
    assert (result.exit_code, "is unchanged" in result.output) == (1, True)
    assert file.read_bytes() == content


def test_a_symbolic_link_stays(run: Run, file: Path, tmp_path: Path) -> None:
    """The target of the link is changed, for people who keep their files elsewhere."""
    write(file, "{}")
    real = file.rename(tmp_path / "kept.json")
    file.symlink_to(real)
    assert run("install", "cursor", "--yes").exit_code == 0
    assert file.is_symlink()
    assert "toold" in json.loads(real.read_text())["mcpServers"]


@pytest.mark.parametrize(("editor", "name"), [("cursor", ".cursor/mcp.json"), ("codex", ".codex/config.toml")])
def test_removing_the_only_entry_of_a_file_that_install_created(run: Run, file: Path, editor: str, name: str) -> None:
    """The file is removed and no backup remains; a file that was there before stays, even if it is empty."""
    target = file.parent.parent / name
    run("install", editor, "--yes")
    assert target.exists()
    assert run("install", editor, "--remove", "--yes").exit_code == 0
    assert list(target.parent.iterdir()) == []
    target.write_text("")
    run("install", editor, "--yes")
    run("install", editor, "--remove", "--yes")
    assert target.exists()


def test_removing_a_missing_entry(run: Run, file: Path) -> None:
    """Says so, and makes no file."""
    assert "nothing to do" in run("install", "cursor", "--remove").output
    assert not file.exists()


def test_editor_names_are_not_abbreviated(run: Run) -> None:
    """Help says which there are, with no name broken in two; so does a name that is none of them."""
    reported = run("install", "--help").stdout.split()
    assert {"claude-desktop,", "codex."} <= set(reported)
    assert "Invalid value for 'EDITOR'" in run("install", "emacs").stderr
