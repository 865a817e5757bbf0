"""What is said where a package is missing."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from baseline.needs import require

SCRIPTS: Final = Path(__file__).parents[2] / "scripts/baseline_collection"


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing package ends the script with 2 before anything was begun, and says what brings it."""
    with pytest.raises(SystemExit) as ended:
        require(["json", "no_such_package"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "no_such_package cannot be imported by this Python; `make setup` brings it to .venv/bin/python, "
        "`pip install 'toold[baseline]'` to another\n"
    )


def test_what_is_there_is_no_matter() -> None:
    """Where all are there, nothing happens."""
    require(["json"])


@pytest.mark.process
def test_a_python_without_toold_is_told() -> None:
    """A script that is run by the machine's own Python says in one line which Python has what it needs."""
    without_packages = [sys.executable, "-E", "-S", str(SCRIPTS / "collect.py"), "--help"]
    run = subprocess.run(without_packages, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("toold cannot be imported by this Python; `make setup` brings it to .venv/bin/python")
    assert run.stderr.count("\n") == 1
