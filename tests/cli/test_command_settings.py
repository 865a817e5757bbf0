"""The settings of a command, and the environment of services and editors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from toold.cli.command_settings import (
    WrongSettingError,
    required_environment,
    settings_with,
    toold_environment,
    toold_program,
)
from toold.protocol.daemon_address import default_state_dir

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_wrong_flag_is_a_usage_error() -> None:
    """The usage text is shown."""
    with pytest.raises(click.UsageError, match="port \\(--port\\): must be 65535 or less"):
        settings_with({"port": 70_000})


@pytest.mark.parametrize("place", ["TOOLD_PORT", "toold.toml"])
def test_a_wrong_variable_or_file_is_one_line(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """Exit code 2 and the setting with its place, as any other hindrance to a start; no usage."""
    monkeypatch.delenv("TOOLD_PORT")
    if place == "TOOLD_PORT":
        monkeypatch.setenv("TOOLD_PORT", "70000")
    else:
        (tmp_path / "toold.toml").write_text("port = 70000")
    result = run("serve")
    assert result.exit_code == WrongSettingError.exit_code == 2
    assert (result.stdout, result.stderr) == ("", f"toold: cannot start: port ({place}): must be 65535 or less\n")


def test_valid_settings_are_returned() -> None:
    """Flags override; None means not given."""
    settings = settings_with({"port": 5000, "http_port": None})
    assert (settings.port, settings.http_port) == (5000, 8080)


def test_only_variables_that_differ_from_the_default_are_required(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The state directory if it is not the default, and the settings file if it is not the state directory's."""
    monkeypatch.chdir(tmp_path)
    state, config = tmp_path / "state", tmp_path / "toold.toml"
    config.touch()
    both = {"TOOLD_STATE_DIR": str(state), "TOOLD_CONFIG": str(config)}
    assert toold_environment(settings_with({})) == required_environment(state, config) == both
    assert required_environment(state, state / "toold.toml") == {"TOOLD_STATE_DIR": str(state)}
    assert required_environment(default_state_dir({}), None) == {}


def test_the_command_is_this_interpreters() -> None:
    """So that it needs no PATH, which editors started from a desktop do not have."""
    assert Path(toold_program()[0]).is_absolute()
