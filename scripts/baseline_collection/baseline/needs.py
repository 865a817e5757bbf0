"""Checks that the packages of an extra are installed, and says what to install."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec


def require(packages: Sequence[str], extra: str = "baseline") -> None:
    """Return if all packages can be imported.

    Raises:
        SystemExit: with code 2, after a line on stderr that names the missing packages and how to install them.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        sys.stderr.write(
            f"{names} cannot be imported by this Python. Run `make setup` and use .venv/bin/python, "
            f"or run pip install '.[{extra}]' in toold's checkout\n"
        )
        raise SystemExit(2)
