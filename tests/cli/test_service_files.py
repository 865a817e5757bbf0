"""The content of the service's files, for any paths."""

import os
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.service_files import StartCommand, launchd_agent, systemd_unit

START = StartCommand(
    ("/opt/toold/bin/toold", "serve"), Path("/home/me/work"), {"TOOLD_STATE_DIR": "/home/me/state"}, grace_period_s=12.5
)
ODD = StartCommand(
    ("/opt/a $c %d/toold", "serve"),
    Path("/home/me/a %h b"),
    {"TOOLD_STATE_DIR": '/s "t" $u %v\\w'},
    grace_period_s=1,
)
"""With everything in its paths that a unit's file would take for something else."""


def test_the_unit_says_how_to_start_reload_and_stop() -> None:
    """It has the directory and the environment; a reload sends SIGHUP, and a stop leaves time for the drain."""
    lines = systemd_unit(START).splitlines()
    for line in (
        'ExecStart="/opt/toold/bin/toold" "serve"',
        "ExecReload=/bin/kill -HUP $MAINPID",
        "WorkingDirectory=/home/me/work",
        'Environment="TOOLD_STATE_DIR=/home/me/state"',
        "Restart=on-failure",
        "RestartPreventExitStatus=2",
        "TimeoutStopSec=33",
        "WantedBy=default.target",
    ):
        assert line in lines


def test_special_characters_in_paths_are_quoted() -> None:
    """Quotes, backslashes, and the characters that mark variables and specifiers in a unit."""
    lines = systemd_unit(ODD).splitlines()
    assert 'ExecStart="/opt/a $c %%d/toold" "serve"' in lines
    assert "WorkingDirectory=/home/me/a %%h b" in lines
    assert 'Environment="TOOLD_STATE_DIR=/s \\"t\\" $u %%v\\\\w"' in lines


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.process
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """``systemd-analyze verify`` reports nothing, for plain and for unusual paths."""
    directory = tmp_path / "a %h b"
    directory.mkdir()
    program = tmp_path / "a $c %d" / "toold"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    start = StartCommand(
        (str(program), "serve"), directory, {"TOOLD_STATE_DIR": str(directory), "TOOLD_CONFIG": '/"$x'}, 10
    )
    file = tmp_path / "toold.service"
    file.write_text(systemd_unit(start))
    env = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path)}
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)], env=env, capture_output=True, text=True, check=False
    )
    assert (checked.returncode, checked.stderr) == (0, "")


@given(st.text(st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=1))
def test_an_agent_supports_any_path(name: str) -> None:
    """launchd parses the intended values."""
    start = StartCommand((f"/{name}/toold", "serve"), Path("/") / name, {"TOOLD_STATE_DIR": name}, 10)
    read = plistlib.loads(launchd_agent(start, Path("/log")))
    assert read["ProgramArguments"] == [f"/{name}/toold", "serve"]
    assert (read["WorkingDirectory"], read["EnvironmentVariables"]) == (str(start.directory), start.environment)


def test_an_agent_restarts_after_a_failure() -> None:
    """Starts at login and after a crash, not after a clean exit, which gets enough time."""
    read = plistlib.loads(launchd_agent(START, Path("/home/me/toold.log")))
    assert (read["RunAtLoad"], read["KeepAlive"]) == (True, {"SuccessfulExit": False})
    assert read["ExitTimeOut"] == 33
    assert read["StandardErrorPath"] == read["StandardOutPath"] == "/home/me/toold.log"
