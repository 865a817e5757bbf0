"""The doctor's checks of editors' files."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from toold.cli.editors import check_editors


def checked(home: Path, entry: Any, state: Path) -> list[tuple[str, str]]:
    (home / ".cursor").mkdir()
    (home / ".cursor/mcp.json").write_text(entry if isinstance(entry, str) else json.dumps({"mcpServers": entry}))
    checks = check_editors(state, daemon_file=None, platform="linux", home=home, env={})
    return [(check.status, check.message) for check in checks]


@pytest.mark.parametrize(
    ("entry", "status", "said"),
    [
        ({"command": sys.executable}, "ok", "starts"),
        ({"command": "/nowhere/toold"}, "warn", "missing command: '/nowhere/toold'"),
        ({"command": "surely-no-such-program"}, "warn", "missing command"),
        ({}, "warn", "missing command: None"),
        ({"command": sys.executable, "env": {"TOOLD_STATE_DIR": "/other"}}, "warn", "uses the daemon of /other"),
    ],
)
def test_an_entry(tmp_path: Path, entry: dict[str, Any], status: str, said: str) -> None:
    """It must start an existing program, for the daemon of this state directory."""
    state = tmp_path / "state"
    named = {"env": {"TOOLD_STATE_DIR": str(state)}}
    ((found, message),) = checked(tmp_path, {"toold": named | entry}, state)
    assert found == status
    assert said in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """It is reported, since the editor cannot parse it either."""
    ((status, message),) = checked(tmp_path, "{nonsense", tmp_path)
    assert (status, message.endswith("fix it first")) == ("warn", True)


def test_editors_without_an_entry(tmp_path: Path) -> None:
    """They get no check."""
    assert checked(tmp_path, {"other": {"command": "x"}}, tmp_path) == []


@pytest.fixture
def entries(tmp_path: Path) -> dict[str, Path]:
    """Two entries of one state directory: Cursor's has no settings file, and Gemini's names one."""
    state, other = tmp_path / "state", tmp_path / "other.toml"
    other.touch()
    for file, more in ((".cursor/mcp.json", {}), (".gemini/settings.json", {"TOOLD_CONFIG": str(other)})):
        (tmp_path / file).parent.mkdir()
        entry = {"command": sys.executable, "env": {"TOOLD_STATE_DIR": str(state), **more}}
        (tmp_path / file).write_text(json.dumps({"mcpServers": {"toold": entry}}))
    return {"home": tmp_path, "state": state, "other": other}


def messages(entries: dict[str, Path], daemon_file: Path | None) -> dict[str, tuple[str, str]]:
    home, state = entries["home"], entries["state"]
    checks = check_editors(state, daemon_file=daemon_file, platform="linux", home=home, env={})
    return {check.name: (check.status, check.message) for check in checks}


def test_entries_with_different_settings_files(entries: dict[str, Path]) -> None:
    """The editor that starts the daemon would decide; with a running daemon, its file is the right one."""
    state_file = entries["state"] / "toold.toml"
    reported = messages(entries, None)
    assert reported["editors"][0] == "warn"
    assert f"(cursor: {state_file}, gemini-cli: {entries['other']})" in reported["editors"][1]
    assert reported["cursor"][0] == reported["gemini-cli"][0] == "ok"
    status, message = messages(entries, state_file)["gemini-cli"]
    assert (status, message.endswith(f"but the running one reads {state_file}")) == ("warn", True)
    assert messages(entries, entries["other"])["cursor"][0] == "warn"


def test_a_settings_file_with_which_no_daemon_would_start(entries: dict[str, Path]) -> None:
    """The error is the one of the start, which the editor would not show."""
    entries["other"].write_text("max_runing = 3\n")
    reported = messages(entries, None)
    assert reported["gemini-cli"][0] == "fail"
    assert "unknown setting 'max_runing'; did you mean 'max_running'?" in reported["gemini-cli"][1]
    assert reported["cursor"][0] == "ok"
