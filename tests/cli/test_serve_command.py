"""``toold serve``: flags become settings. tests/e2e tests the running daemon."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli import serve_command
from toold.daemon import Settings

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Settings]:
    """The settings with which the daemon would run; the stub exits at once with exit code 7."""
    settings: list[Settings] = []

    def run(value: Settings) -> int:
        settings.append(value)
        return 7

    monkeypatch.setattr(serve_command, "run", run)
    monkeypatch.chdir(tmp_path)
    return settings


def test_flags_become_settings_and_the_exit_code_is_the_daemons(
    run: Run, served: list[Settings], tmp_path: Path
) -> None:
    """Each flag sets its setting."""
    listen = ("--host", "::1", "--port", "5000", "--http-port", "5001")
    flags = (*listen, "--simulate", "--no-auth", "--log-format", "json", "--state-dir", "here")
    assert run("serve", *flags).exit_code == 7
    (settings,) = served
    assert (settings.host, settings.port, settings.http_port) == ("::1", 5000, 5001)
    assert (settings.simulate, settings.auth, settings.log_format) == (True, False, "json")
    assert settings.state_dir == tmp_path / "here"


def test_missing_flags_leave_environment_and_file_in_effect(
    run: Run, served: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags that are not given hide nothing."""
    (tmp_path / "other.toml").write_text('simulate = false\nlog_format = "console"\n')
    monkeypatch.setenv("TOOLD_PORT", "6000")
    assert run("serve", "--config", "other.toml").exit_code == 7
    (settings,) = served
    assert (settings.port, settings.simulate, settings.log_format, settings.auth) == (6000, False, "console", True)


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--port", "70000"], "--port"),
        (["--port", "x"], "--port"),
        (["--no-auth", "--host", "192.0.2.1"], "--no-auth"),
        (["--log-format", "xml"], "--log-format"),
        (["--config", "nowhere.toml"], "nowhere.toml"),
    ],
)
def test_an_invalid_flag_prevents_the_start(run: Run, served: list[Settings], flags: list[str], named: str) -> None:
    """Exit code 2, the flag in the message, and no daemon."""
    result = run("serve", *flags)
    assert result.exit_code == 2
    assert named in result.stderr
    assert not served
