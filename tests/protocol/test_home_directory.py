"""``~`` in paths."""

from pathlib import Path

import pytest
from toold.protocol.home_directory import expand_home


def test_a_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """``~`` is the user's home directory; the path of an unknown user is unchanged and raises nothing."""
    monkeypatch.setenv("HOME", "/home/ann")
    assert expand_home("~/src") == Path("/home/ann/src")
    assert expand_home("~no-such-user/src") == Path("~no-such-user/src")
