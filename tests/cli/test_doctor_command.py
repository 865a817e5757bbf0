"""``toold doctor``: how its checks are printed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from toold.cli import doctor_command
from toold.cli.command_line import toold
from toold.daemon import CheckResult

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run

CHECKS = [
    CheckResult("python", "ok", "Python 3.13"),
    CheckResult("kimi key", "warn", "not set", "set KIMI_API_KEY"),
    CheckResult("port", "fail", "8079 is taken by pid 7", "stop it, or choose another with --port"),
]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[CheckResult]:
    """The results of the checks, which tests modify."""
    checks = list(CHECKS)

    async def diagnose(settings: Any) -> list[CheckResult]:
        return checks

    monkeypatch.setattr(doctor_command, "diagnose", diagnose)
    return checks


def test_each_check_is_printed_with_its_remedy(run: Run, found: list[CheckResult]) -> None:
    """Status, name and message on one line, what to do on the next; exit code 1 where one failed."""
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "ok    python: Python 3.13",
        "warn  kimi key: not set",
        "      → set KIMI_API_KEY",
        "fail  port: 8079 is taken by pid 7",
        "      → stop it, or choose another with --port",
    ]


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_no_color_is_honoured(
    found: list[CheckResult],
    no_color: str,
    coloured: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NO_COLOR, where it is not empty, takes the colours away that a terminal would show."""
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        toold.main(["doctor"], prog_name="toold")
    assert ("\x1b[" in capsys.readouterr().out) is coloured


def test_warnings_are_not_failures(run: Run, found: list[CheckResult]) -> None:
    """Exit code 0 where nothing failed."""
    del found[-1]
    assert run("doctor").exit_code == 0


def test_json_is_an_array_of_checks(run: Run, found: list[CheckResult]) -> None:
    """Machine output only, with the same exit code."""
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[1] == {
        "name": "kimi key",
        "status": "warn",
        "message": "not set",
        "remedy": "set KIMI_API_KEY",
        "settings_of": "shell",
    }


def test_the_real_checks_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against this machine, with simulated vendors: every check has a status, and a failed one a remedy."""
    monkeypatch.setenv("TOOLD_SIMULATE", "1")
    monkeypatch.delenv("TOOLD_PORT")
    result = run("doctor", "--json")
    checks = json.loads(result.stdout)
    assert {check["status"] for check in checks} <= {"ok", "warn", "fail"}
    assert all(check["remedy"] for check in checks if check["status"] == "fail")
    assert result.exit_code == any(check["status"] == "fail" for check in checks)


def test_a_wrong_setting_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message is the same as at a failed start."""
    monkeypatch.setenv("TOOLD_PORT", "http")
    result = run("doctor")
    assert result.exit_code == 2
    assert result.stderr == "toold: cannot start: port (TOOLD_PORT): must be a whole number\n"


def report(**values: str) -> dict[str, Any]:
    """A daemon's report in which these settings come from its file."""
    defaults = {"workspace": "/work", "client_workspaces": "false", "state_dir": "/state", "kimi_api_key": "not set"}
    settings = {name: {"value": value, "origin": "default"} for name, value in defaults.items()}
    settings |= {name: {"value": value, "origin": "toold.toml"} for name, value in values.items()}
    return {"config": "/state/toold.toml", "config_exists": True, "simulated": True, "settings": settings}


def test_the_settings_of_the_running_daemon_are_labelled_apart(
    run: Run, found: list[CheckResult], operated: Operated
) -> None:
    """The daemon's own settings come first, with their origin and what this shell has instead."""
    operated.answers["GET /operator/settings"] = (
        200,
        report(kimi_api_key="set", max_running="7") | {"problems": ["source crm: its document cannot be used"]},
    )
    lines = run("doctor").stdout.splitlines()
    shell = lines.index("The settings of this shell, with which a daemon started here would run:")
    assert lines[0] == "The running daemon's settings:"
    assert "ok    kimi_api_key: set (toold.toml); here: not set" in lines[:shell]
    assert "ok    max_running: 7 (toold.toml); here: 24" in lines[:shell]
    assert "ok    python: Python 3.13" in lines[shell:]
    assert "warn  problem: source crm: its document cannot be used" in lines[:shell]
    rows = json.loads(run("doctor", "--json").stdout)
    assert {row["settings_of"] for row in rows if row["name"] == "max_running"} == {"daemon"}
    assert {row["settings_of"] for row in rows if row["name"] == "python"} == {"shell"}


def test_a_daemon_that_refuses_its_settings_is_reported(run: Run, found: list[CheckResult], operated: Operated) -> None:
    """An older daemon, or one of another user: its settings are unknown, and the checks run nevertheless."""
    result = run("doctor")
    assert "warn  settings: not available: the daemon's HTTP port answered with status 404" in result.stdout
    assert "ok    python: Python 3.13" in result.stdout


@pytest.mark.parametrize(
    ("values", "warned"),
    [({"workspace": "/state"}, True), ({"workspace": "/state", "client_workspaces": "true"}, False), ({}, False)],
)
def test_a_daemon_that_reads_no_files_is_warned_about(values: dict[str, str], warned: bool) -> None:
    """Its workspace is its state directory, as when an editor started it; the remedy names its file."""
    warnings = [check for check in doctor_command.daemon_checks(report(**values), report()) if check.status == "warn"]
    assert [check.name for check in warnings] == ["files"] * warned
    assert all("/state/toold.toml" in str(check.remedy) for check in warnings)
