"""``toold service``: the files that it writes and the commands that it runs, with a stub of systemctl."""

from __future__ import annotations

import plistlib
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli.daemon_connection import CommandFailedError
from toold.cli.service_command import service_for
from toold.daemon import load_settings

pytestmark = pytest.mark.process

if TYPE_CHECKING:
    from tests.cli.conftest import Operated, Run

SECRET = "sk-a-secret-of-the-shell"


@dataclass
class Machine:
    """A home directory, a working directory, and a service manager that records its commands."""

    home: Path
    programs: Path
    platform: str

    @property
    def file(self) -> Path:
        linux = self.platform == "linux"
        return self.home / (".config/systemd/user/toold.service" if linux else "Library/LaunchAgents/toold.plist")

    @property
    def reported(self) -> list[str]:
        notes = self.home / "notes"
        return notes.read_text().splitlines() if notes.exists() else []

    def forget(self) -> None:
        (self.home / "notes").unlink(missing_ok=True)

    def manager(self, script: str = "") -> None:
        """Put stub ``systemctl`` and ``launchctl`` into the path, which record their arguments and run ``script``."""
        for name in ("systemctl", "launchctl"):
            program = self.programs / name
            program.write_text(f'#!/bin/sh\necho "{name} $*" >> "{self.home}/notes"\n{script}\n')
            program.chmod(0o755)


def on(platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    home, programs = tmp_path / "home", tmp_path / "programs"
    (home / "work").mkdir(parents=True)
    programs.mkdir()
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("TOOLD_PORT")
    monkeypatch.chdir(home / "work")
    machine = Machine(home, programs, platform)
    machine.manager()
    return machine


@pytest.fixture
def linux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return on("linux", tmp_path, monkeypatch)


@pytest.fixture
def mac(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return on("darwin", tmp_path, monkeypatch)


# --- install ---------------------------------------------------------------------------------------------------------


def test_install_writes_the_unit_and_starts_it(run: Run, linux: Machine, bare_environment: Path) -> None:
    """The file and the commands are shown before the question; the unit starts toold in this directory."""
    (linux.home / "work" / "toold.toml").write_text("grace_period_s = 3\n")
    result = run("service", "install", stdin="y\n")
    assert result.exit_code == 0, result.output
    content = linux.file.read_text()
    shown, _, question = result.stdout.partition("Install and start the service?")
    assert question
    assert content in shown
    assert "systemctl --user enable --now toold.service" in shown
    assert linux.reported == ["systemctl --user daemon-reload", "systemctl --user enable --now toold.service"]
    for line in (
        f"WorkingDirectory={linux.home / 'work'}",
        f'Environment="TOOLD_STATE_DIR={bare_environment}"',
        f'Environment="TOOLD_CONFIG={linux.home / "work" / "toold.toml"}"',
        "TimeoutStopSec=23",
    ):
        assert line in content.splitlines()


def test_the_unit_starts_the_toold_of_this_interpreter(
    linux: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command next to the interpreter, or ``python -m toold`` if there is none."""
    settings = load_settings({}, env={}, cwd=tmp_path)
    monkeypatch.setattr(sys, "executable", str(linux.programs / "python"))
    assert (
        f'ExecStart="{linux.programs}/python" "-m" "toold" "serve"' in service_for("linux", settings).content.decode()
    )
    (linux.programs / "toold").touch()
    assert f'ExecStart="{linux.programs}/toold" "serve"' in service_for("linux", settings).content.decode()


def test_no_secret_is_written_and_ignored_variables_are_listed(
    run: Run, linux: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys and other variables of the shell are listed by name, with the file in which to set them."""
    monkeypatch.setenv("KIMI_API_KEY", SECRET)
    monkeypatch.setenv("TOOLD_MAX_RUNNING", "3")
    result = run("service", "install", "--yes")
    assert result.exit_code == 0
    assert SECRET not in result.output + linux.file.read_text()
    (reported,) = [line for line in result.stderr.splitlines() if "KIMI_API_KEY" in line]
    assert "TOOLD_MAX_RUNNING" in reported
    assert "TOOLD_STATE_DIR" not in reported
    assert str(linux.home.parent / "state" / "toold.toml") in reported


@pytest.mark.parametrize("answer", ["n\n", "", None])
def test_without_confirmation_nothing_is_done(run: Run, linux: Machine, answer: str | None) -> None:
    """A no, or no terminal: exit code 1."""
    result = run("service", "install", stdin=answer)
    assert result.exit_code == 1
    assert not linux.file.exists()
    assert linux.reported == []


def test_print_only_prints(run: Run, linux: Machine) -> None:
    """``--print`` asks no question."""
    result = run("service", "install", "--print")
    assert result.exit_code == 0
    assert "ExecStart=" in result.stdout
    assert not linux.file.exists()
    assert linux.reported == []


def test_installing_again_changes_nothing_but_starts(run: Run, linux: Machine) -> None:
    """An unchanged file causes neither a backup nor a restart."""
    run("service", "install", "--yes")
    linux.forget()
    assert run("service", "install", "--yes").exit_code == 0
    assert [path.name for path in linux.file.parent.iterdir()] == ["toold.service"]
    assert linux.reported[-1] == "systemctl --user enable --now toold.service"


def test_another_file_of_that_name_is_backed_up(run: Run, linux: Machine) -> None:
    """Under an unused name each time; the service restarts with the new file."""
    linux.file.parent.mkdir(parents=True)
    for number in (1, 2):
        linux.file.write_text(f"my own {number}")
        result = run("service", "install", "--yes")
        assert f"toold.service.bak{number}" in result.stdout
        assert linux.file.with_name(f"toold.service.bak{number}").read_text() == f"my own {number}"
    assert "ExecStart=" in linux.file.read_text()
    assert linux.reported[-1] == "systemctl --user restart toold.service"


def test_without_systemctl_nothing_is_left(run: Run, linux: Machine) -> None:
    """Where systemd is not installed, install fails, names what to run instead, and writes no file or directory."""
    (linux.programs / "systemctl").unlink()
    result = run("service", "install", "--yes")
    assert result.exit_code == 1
    assert re.search(r"systemctl is not installed.*nothing was installed.*toold.* serve", result.stderr)
    assert sorted(path.name for path in linux.home.iterdir()) == ["work"]


@pytest.mark.parametrize("failing", ["daemon-reload", "enable"])
def test_a_failed_install_is_undone(run: Run, linux: Machine, failing: str) -> None:
    """If systemctl fails, as without a user bus, its words are shown, and the file and its directories are gone."""
    linux.manager(f'case "$*" in *{failing}*) echo "Failed to connect to bus" >&2; exit 1;; esac')
    result = run("service", "install", "--yes")
    assert result.exit_code == 1
    assert "Failed to connect to bus\nNothing was installed." in result.stderr
    assert sorted(path.name for path in linux.home.iterdir()) == ["notes", "work"]
    assert linux.reported[-2:] == ["systemctl --user disable --now toold.service", "systemctl --user daemon-reload"]


def test_a_failed_install_restores_the_earlier_file(run: Run, linux: Machine) -> None:
    """A file that was replaced is back under its name, without a backup."""
    linux.file.parent.mkdir(parents=True)
    linux.file.write_text("my own")
    linux.manager('case "$*" in *enable*) exit 1;; esac')
    assert run("service", "install", "--yes").exit_code == 1
    assert [(path.name, path.read_text()) for path in linux.file.parent.iterdir()] == [("toold.service", "my own")]


def test_install_refuses_if_a_daemon_runs(run: Run, linux: Machine, operated: Operated) -> None:
    """The service's would find the directory taken; how to stop the other is said."""
    result = run("service", "install", "--yes")
    assert result.exit_code == 1
    assert f"pid {operated.pid}" in result.stderr
    assert "toold stop" in result.stderr
    assert not linux.file.exists()


def test_an_invalid_setting_prevents_the_installation(run: Run, linux: Machine) -> None:
    """It would only fail to start."""
    (linux.home / "work" / "toold.toml").write_text("grace_period_s = 0\n")
    result = run("service", "install", "--yes")
    assert result.exit_code == 2
    assert "grace_period_s" in result.stderr
    assert not linux.file.exists()


def test_a_directory_that_cannot_be_written_is_named(run: Run, linux: Machine) -> None:
    """For example, because a file has the name of the directory."""
    (linux.home / ".config").write_text("")
    result = run("service", "install", "--yes")
    assert result.exit_code == 1
    assert str(linux.file) in result.stderr
    assert linux.reported == []


# --- remove ----------------------------------------------------------------------------------------------------------


def test_remove_stops_it_and_removes_its_file(run: Run, linux: Machine) -> None:
    """In the order that systemd requires."""
    run("service", "install", "--yes")
    linux.forget()
    result = run("service", "remove", stdin="y\n")
    assert result.exit_code == 0
    assert not linux.file.exists()
    assert linux.reported == ["systemctl --user disable --now toold.service", "systemctl --user daemon-reload"]


def test_remove_asks_first_and_can_only_print(run: Run, linux: Machine) -> None:
    """Nothing is removed before the confirmation."""
    run("service", "install", "--yes")
    linux.forget()
    assert run("service", "remove", "--print").exit_code == 0
    assert run("service", "remove", stdin="n\n").exit_code == 1
    assert linux.file.exists()
    assert linux.reported == []


def test_removing_a_missing_service(run: Run, linux: Machine) -> None:
    """Removing a service that is not installed succeeds."""
    result = run("service", "remove", "--yes")
    assert result.exit_code == 0
    assert str(linux.file) in result.stdout
    assert linux.reported == []


# --- elsewhere -------------------------------------------------------------------------------------------------------


def test_on_a_mac_it_is_an_agent(run: Run, mac: Machine, bare_environment: Path) -> None:
    """The agent is loaded into the user's session, and unloaded on removal."""
    result = run("service", "install", "--yes")
    assert result.exit_code == 0, result.output
    content = plistlib.loads(mac.file.read_bytes())
    assert content["EnvironmentVariables"]["TOOLD_STATE_DIR"] == str(bare_environment)
    (loaded,) = mac.reported
    assert loaded.startswith("launchctl bootstrap gui/")
    assert loaded.endswith(str(mac.file))
    mac.forget()
    assert run("service", "remove", "--yes").exit_code == 0
    assert not mac.file.exists()
    assert [line.split()[1] for line in mac.reported] == ["bootout"]


def test_an_agent_that_is_not_loaded_can_be_removed(run: Run, mac: Machine) -> None:
    """launchctl bootout then exits with ESRCH (3), which is ignored; other codes are errors."""
    assert run("service", "install", "--yes").exit_code == 0
    mac.manager("exit 5")
    assert run("service", "remove", "--yes").exit_code == 1
    assert mac.file.exists()
    mac.manager("exit 3")
    result = run("service", "remove", "--yes")
    assert result.exit_code == 0, result.output
    assert not mac.file.exists()


def test_other_platforms_are_not_supported(tmp_path: Path) -> None:
    """The message says what to do instead."""
    with pytest.raises(CommandFailedError, match=r"freebsd14.*toold serve"):
        service_for("freebsd14", load_settings({}, env={}, cwd=tmp_path))
