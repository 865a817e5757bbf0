"""``toold demo`` with a daemon that fails. ``tests/test_wheel.py`` takes the whole tour."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from toold.cli.demo_command import choose_file
from toold.cli.demo_daemon import demo_environment

pytestmark = pytest.mark.process

if TYPE_CHECKING:
    from tests.cli.conftest import Run


def test_a_daemon_that_does_not_start_fails_the_tour(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failed step is printed, and the exit code is 1."""
    program = shutil.which("false")
    assert program is not None
    monkeypatch.setattr(sys, "executable", program)
    result = run("demo")
    assert result.exit_code == 1
    assert "the daemon exited with code 1" in result.stdout


def test_the_file_is_from_the_current_directory_if_it_has_one(tmp_path: Path) -> None:
    """README.md first, then another text file; binaries' names and huge files are passed over."""
    cwd, directory = tmp_path / "cwd", tmp_path / "directory"
    cwd.mkdir()
    directory.mkdir()
    (cwd / "huge.md").write_bytes(b"x" * 300_000)
    (cwd / "picture.png").write_bytes(b"x")
    (cwd / "program.py").write_text("print()\n")
    assert choose_file(cwd, directory) == (cwd, "program.py")
    (cwd / "README.md").write_text("# Hello\n")
    assert choose_file(cwd, directory) == (cwd, "README.md")


def test_an_empty_directory_gets_a_sample_file_elsewhere(tmp_path: Path) -> None:
    """The current directory is left as it was."""
    cwd, directory = tmp_path / "cwd", tmp_path / "directory"
    cwd.mkdir()
    directory.mkdir()
    workspace, file = choose_file(cwd, directory)
    assert (workspace / file).read_text()
    assert not list(cwd.iterdir())


def test_variables_of_another_daemon_are_removed() -> None:
    """TOOLD_ variables are removed except the workspace; other variables stay."""
    env = {"TOOLD_TOKEN": "t", "TOOLD_PORT": "1", "PATH": "/bin"}
    assert demo_environment(env, Path("/w")) == {"PATH": "/bin", "TOOLD_WORKSPACE": "/w"}
