"""How others start this command."""

from pathlib import Path

import pytest
from toold.cli.command_settings import settings_with
from toold.cli.program_path import environment, needed, toold


def test_variables_that_say_something(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The state directory where it is another than the platform's, the settings' file where there is one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toold.toml").touch()
    both = {"TOOLD_STATE_DIR": str(tmp_path / "state"), "TOOLD_CONFIG": str(tmp_path / "toold.toml")}
    assert environment(settings_with({})) == needed(settings_with({})) == both
    monkeypatch.delenv("TOOLD_STATE_DIR")
    assert needed(settings_with({})) == {"TOOLD_CONFIG": both["TOOLD_CONFIG"]}


def test_the_command_is_this_interpreters() -> None:
    """So that it needs no PATH, which editors started from a desktop do not have."""
    assert Path(toold()[0]).is_absolute()
