"""What the tests see of the person who runs them: nothing."""

import os
import tempfile
from pathlib import Path

import platformdirs


def test_the_callers_home_is_not_the_tests_home() -> None:
    """An editor's settings and a running daemon's state, which are below a person's home, change no test."""
    home = Path.home()
    assert home.parent == Path(tempfile.gettempdir())
    assert Path("~").expanduser() == home
    assert Path(platformdirs.user_state_dir("toold", appauthor=False)).is_relative_to(home)
    assert not [name for name in os.environ if name.startswith("XDG_") and name.endswith("_HOME")]
    assert not {"CLAUDE_CONFIG_DIR", "CODEX_HOME"} & os.environ.keys()
