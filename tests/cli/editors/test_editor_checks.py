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
    checks = check_editors(state, platform="linux", home=home, env={})
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
