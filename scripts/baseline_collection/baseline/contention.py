"""How much the machine was asked for more than it has, while a run went on: Linux's pressure figures for the CPU."""

import time
from pathlib import Path
from typing import Final

PRESSURE: Final = Path("/proc/pressure/cpu")
"""``some … total=`` counts the microseconds in which anything that could run waited for a CPU (Linux 4.20)."""


class Contention:
    """From when it is made on."""

    def __init__(self, source: Path = PRESSURE) -> None:
        self._source = source
        self._began = time.monotonic()
        self._stalled = stalled_s(source)

    def share(self) -> float | None:
        """The share of the time in which something waited, from 0 to 1; None where the kernel does not tell."""
        now = stalled_s(self._source)
        spent = time.monotonic() - self._began
        if now is None or self._stalled is None or spent <= 0:
            return None
        return round(min(1.0, (now - self._stalled) / spent), 3)


def stalled_s(source: Path) -> float | None:
    """Seconds so far in which anything waited for a CPU; None where the file is not there or says something else."""
    try:
        kind, *figures = source.read_text("ascii").splitlines()[0].split()
    except (OSError, IndexError, ValueError):
        return None
    total = next((figure.removeprefix("total=") for figure in figures if figure.startswith("total=")), "")
    return int(total) / 1e6 if kind == "some" and total.isdigit() else None
