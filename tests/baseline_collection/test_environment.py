"""The machine and the checkout in a record."""

import shutil
import subprocess
from pathlib import Path

import pytest

from baseline.environment import commit, environment


@pytest.mark.process
def test_environment_is_recorded() -> None:
    """The environment has the machine, Python, packages and daemon."""
    now = environment("toold 0.1.0")
    assert now.machine.cores >= 1
    assert now.python.startswith("CPython 3.")
    assert {"toold", "websockets", "scipy"} <= set(now.packages)
    assert now.daemon == "toold 0.1.0"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.process
def test_commit_shows_whether_files_were_changed(tmp_path: Path) -> None:
    """A checkout has its commit, with a + suffix if a file differs. A directory that is not a checkout has no
    commit.
    """
    assert commit(tmp_path) is None

    def git(*words: str) -> None:
        who = ("-c", "user.name=tests", "-c", "user.email=tests@localhost")
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    git("init")
    git("commit", "--allow-empty", "-m", "first")
    clean = commit(tmp_path)
    assert clean is not None
    assert len(clean) == 40
    (tmp_path / "new").touch()
    assert commit(tmp_path) == clean + "+"
