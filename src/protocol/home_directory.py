"""Expands ``~`` in paths. Pure, except for the system's list of users."""

from pathlib import Path


def expand_home(path: str | Path) -> Path:
    """Returns the path with its leading ``~`` or ``~user`` replaced; unchanged for an unknown user, as in shells."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)
