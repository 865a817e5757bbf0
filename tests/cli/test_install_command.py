"""``toold install``."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli.command_settings import toold_program

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run

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
    assert "nothing to do.\n" in again.output
    assert again.output.endswith("Done.\n")
    assert again.stderr == ""
    (bare_environment / "toold.toml").write_text("[toolsets.lea]\n")
    assert run("install", "cursor", "--print", "--toolset", "lea").stderr == ""
    (bare_environment / "toold.toml").write_text("")
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
    """The help lists the names unbroken, and so does the error for an unknown name."""
    reported = run("install", "--help").stdout.split()
    assert {"claude-desktop,", "codex."} <= set(reported)
    assert "Invalid value for 'EDITOR'" in run("install", "emacs").stderr


# --- files and keys --------------------------------------------------------------------------------------------------


def test_without_a_daemon_the_open_folder_becomes_readable(run: Run, file: Path, bare_environment: Path) -> None:
    """The state directory, in which the editor starts the daemon, gets a private toold.toml that says so."""
    result = run("install", "cursor", "--yes")
    settings = bare_environment / "toold.toml"
    assert tomllib.loads(settings.read_text()) == {"client_workspaces": True}
    assert (settings.stat().st_mode & 0o777, bare_environment.stat().st_mode & 0o777) == (0o600, 0o700)
    assert "+client_workspaces = true" in result.output
    assert f"Settings: {settings}." in result.output
    assert "Files: the folder that the editor has open." in result.output
    assert f"Put kimi_api_key, glm_api_key or a table [providers.NAME] into {settings} (mode 600)" in result.output
    before = settings.read_text()
    run("install", "cursor", "--yes")
    assert settings.read_text() == before


def test_a_workspace_is_added_to_the_list(run: Run, file: Path, bare_environment: Path, tmp_path: Path) -> None:
    """Directories accumulate, and with --workspace nothing else becomes readable; --print writes nothing."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert "+workspace = " in run("install", "cursor", "--print", "--workspace", "a").output
    assert not bare_environment.exists()
    run("install", "cursor", "--yes", "--workspace", "a")
    result = run("install", "cursor", "--yes", "--workspace", "a", "--workspace", str(tmp_path / "b"))
    written = tomllib.loads((bare_environment / "toold.toml").read_text())
    assert written == {"workspace": [str(tmp_path / "a"), str(tmp_path / "b")]}
    assert f"Files: {tmp_path / 'a'} and {tmp_path / 'b'}." in result.output
    assert run("install", "cursor", "--yes", "--workspace", "missing").exit_code == 2


@pytest.mark.parametrize("text", ['host = "0.0.0.0"\n', "client_workspaces = false\n", 'workspace = ["."]\n'])
def test_what_the_operator_has_decided_stays(run: Run, file: Path, bare_environment: Path, text: str) -> None:
    """A daemon that others can reach, and one whose files are already chosen."""
    bare_environment.mkdir()
    (bare_environment / "toold.toml").write_text(text)
    assert run("install", "cursor", "--yes").exit_code == 0
    assert (bare_environment / "toold.toml").read_text() == text


def test_keys_are_reported_by_name(
    run: Run, file: Path, bare_environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in the file is set; one in this shell does not reach an editor. Neither is shown."""
    monkeypatch.setenv("KIMI_API_KEY", "sk-of-the-shell")
    result = run("install", "cursor", "--yes")
    assert "does not get KIMI_API_KEY of this shell" in result.output
    with (bare_environment / "toold.toml").open("a") as settings:
        settings.write('glm_api_key = "a-key-of-the-file"\n')
    result = run("install", "cursor", "--yes")
    assert f"Keys: glm_api_key ({bare_environment / 'toold.toml'})." in result.output
    assert "sk-of-the-shell" not in result.output
    assert "a-key-of-the-file" not in result.output


def report(config: Path, **values: str) -> dict[str, object]:
    """What a daemon started in /work says of its settings, with a key from its environment."""
    defaults = {"workspace": "/work", "client_workspaces": "false", "auth": "true", "host": "127.0.0.1"}
    defaults |= {"state_dir": "/state", "kimi_api_key": "set", "glm_api_key": "not set", "toolsets": "none"}
    settings = {name: {"value": value, "origin": "KIMI_API_KEY"} for name, value in (defaults | values).items()}
    return {"config": str(config), "config_exists": False, "directory": "/work", "settings": settings}


def test_a_running_daemon_says_which_file_it_reads(run: Run, file: Path, operated: Operated, tmp_path: Path) -> None:
    """Its own settings file changes, wherever the command runs; its keys are those that it has."""
    theirs = tmp_path / "theirs.toml"
    operated.answers["GET /operator/settings"] = (200, report(theirs))
    result = run("install", "cursor", "--yes")
    assert tomllib.loads(theirs.read_text()) == {"client_workspaces": True}
    assert json.loads(file.read_text())["mcpServers"]["toold"]["env"]["TOOLD_CONFIG"] == str(theirs)
    assert f"Settings: {theirs}, which Cursor's entry names (TOOLD_CONFIG)." in result.output
    assert "Files: /work and the folder that the editor has open." in result.output
    assert "Keys: kimi_api_key (KIMI_API_KEY)." in result.output


def test_a_daemon_in_its_state_directory_reads_only_the_open_folder(
    run: Run, file: Path, operated: Operated, bare_environment: Path
) -> None:
    """The state directory, which tools never read, is not listed; its own file needs no variable."""
    state = str(bare_environment)
    theirs = report(bare_environment / "toold.toml", state_dir=state, workspace=state, client_workspaces="true")
    operated.answers["GET /operator/settings"] = (200, theirs | {"directory": state})
    result = run("install", "cursor", "--yes")
    assert "Files: the folder that the editor has open." in result.output
    assert json.loads(file.read_text())["mcpServers"]["toold"]["env"] == {"TOOLD_STATE_DIR": state}
    assert "toolset 'lea' is not configured" in run("install", "cursor", "--print", "--toolset", "lea").stderr


def test_a_workspace_is_added_to_that_of_a_running_daemon(
    run: Run, file: Path, operated: Operated, tmp_path: Path
) -> None:
    """The directory in which it was started stays readable, although a setting replaces that default."""
    operated.answers["GET /operator/settings"] = (200, report(tmp_path / "theirs.toml"))
    result = run("install", "cursor", "--print", "--workspace", str(tmp_path))
    assert f'+workspace = ["/work", "{tmp_path}"]' in result.output


@pytest.mark.parametrize("values", [{"host": "192.0.2.1"}, {"auth": "false"}])
def test_a_running_daemon_that_others_reach_stays_as_it_is(
    run: Run, file: Path, operated: Operated, tmp_path: Path, values: dict[str, str]
) -> None:
    """Whatever its file says: a flag or a variable may have set it."""
    operated.answers["GET /operator/settings"] = (200, report(tmp_path / "theirs.toml", **values))
    assert run("install", "cursor", "--yes").exit_code == 0
    assert not (tmp_path / "theirs.toml").exists()
