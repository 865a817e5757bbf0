"""Which folder an editor has open."""

from pathlib import Path
from typing import Any

import pytest
from toold.cli.bridge.workspace_roots import first_folder


@pytest.mark.parametrize(
    ("roots", "folder"),
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
def test_the_first_that_is_a_folder_here(roots: Any, folder: str | None) -> None:
    """Others are skipped, and so is what is no root at all."""
    assert first_folder({"roots": roots}) == (None if folder is None else Path(folder))


def test_an_error_tells_of_none() -> None:
    """An editor that cannot say leaves the folder as it is."""
    assert first_folder(None) is None
