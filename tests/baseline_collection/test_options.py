"""Values of the command line: valid ones and their errors."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baseline.options import count, count_or_none, counts, daemon_or_checkout, names, positive, record_path


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (count, "3", 3),
        (count_or_none, "0", 0),
        (counts, "1,2,8", (1, 2, 8)),
        (positive, "0.5", 0.5),
        (names, "echo, chat,", ("echo", "chat")),
        (daemon_or_checkout, "wss://tools.example/", "wss://tools.example/"),
        (daemon_or_checkout, "../branch", Path("../branch")),
        (daemon_or_checkout, ".", Path()),
        (record_path, "runs/before.json", Path("runs/before.json")),
        (record_path, "v1.2", Path("v1.2.json")),
    ],
)
def test_valid_values_are_read(read: Callable[[str], Any], text: str, value: Any) -> None:
    """Each kind of value is read from its text."""
    assert read(text) == value


@pytest.mark.parametrize(
    ("read", "text", "says"),
    [
        (count, "0", "integer of at least 1"),
        (count, "many", "integer of at least 1"),
        (count_or_none, "-1", "integer of at least 0"),
        (counts, "8,1", "must be ascending"),
        (counts, "1,x", "not an integer"),
        (positive, "0", "above 0"),
        (positive, "nan", "above 0"),
        (positive, "inf", "above 0"),
        (positive, "fast", "above 0"),
        (names, ",", "name one tool"),
        (record_path, ".", "names no file"),
    ],
)
def test_invalid_values_are_errors(read: Callable[[str], Any], text: str, says: str) -> None:
    """Any other text is an error that says what is expected."""
    with pytest.raises(argparse.ArgumentTypeError, match=says):
        read(text)
