"""Says what to install where a package of an extra is missing, before anything is begun."""

import sys
from collections.abc import Sequence
from importlib.util import find_spec


def require(packages: Sequence[str], extra: str = "baseline") -> None:
    """Return where all of them can be imported.

    Raises:
        SystemExit: with code 2, after a line on stderr that names what is missing and what brings it.
    """
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        names = " and ".join(missing)
        sys.stderr.write(
            f"{names} cannot be imported by this Python; `make setup` brings it to .venv/bin/python, "
            f"`pip install 'toold[{extra}]'` to another\n"
        )
        raise SystemExit(2)
