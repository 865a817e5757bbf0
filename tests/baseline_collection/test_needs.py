"""Errors for missing packages."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from baseline.needs import require

SCRIPTS: Final = Path(__file__).parents[2] / "scripts/baseline_collection"


def test_a_missing_package_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing package ends the script with exit code 2 at once, and the message says how to install it."""
    with pytest.raises(SystemExit) as ended:
        require(["json", "no_such_package"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "no_such_package cannot be imported by this Python. Run `make setup` and use .venv/bin/python, "
        "or run pip install '.[baseline]' in toold's checkout\n"
    )


def test_installed_packages_pass() -> None:
    """If all packages are installed, nothing happens."""
    require(["json"])


@pytest.mark.process
def test_a_python_without_toold_is_reported() -> None:
    """A script run by a Python without toold says in one line which Python to use."""
    without_packages = [sys.executable, "-E", "-S", str(SCRIPTS / "collect.py"), "--help"]
    run = subprocess.run(without_packages, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("toold cannot be imported by this Python. Run `make setup` and use .venv/bin/python")
    assert run.stderr.count("\n") == 1
