"""What is said where a package is missing."""

import pytest

from baseline.needs import require


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A missing package ends the script with 2 before anything was begun, and says what brings it."""
    with pytest.raises(SystemExit) as ended:
        require(["json", "no_such_package"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "no_such_package cannot be imported; `make setup` or `pip install 'toold[baseline]'` brings it\n"
    )


def test_what_is_there_is_no_matter() -> None:
    """Where all are there, nothing happens."""
    require(["json"])
