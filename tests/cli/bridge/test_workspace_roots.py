"""Which directory an editor has open."""

from pathlib import Path
from typing import Any

import pytest
from toold.cli.bridge.workspace_roots import first_directory


@pytest.mark.parametrize(
    ("roots", "directory"),
    [
        ([{"uri": "file:///home/me/my%20project"}, {"uri": "file:///other"}], "/home/me/my project"),
        ([{"uri": "file://localhost/x"}], "/x"),
        ([{"uri": "https://example/x"}, {"uri": "file:///second"}], "/second"),
        ([{"uri": "file://another-machine/x"}], None),
        ([{"uri": "file:///%00"}, {"uri": 7}, {}, 7, {"uri": "file://[/x"}], None),
        ([], None),
        ("nonsense", None),
    ],
)
def test_the_first_that_is_a_directory_here(roots: Any, directory: str | None) -> None:
    """Others are skipped, and so is what is no root at all."""
    assert first_directory({"roots": roots}) == (None if directory is None else Path(directory))


def test_an_error_tells_of_none() -> None:
    """An editor that cannot say leaves the directory as it is."""
    assert first_directory(None) is None
