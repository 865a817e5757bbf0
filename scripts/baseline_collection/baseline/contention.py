"""CPU contention during a run, from Linux's pressure stall information."""

import time
from pathlib import Path
from typing import Final

PRESSURE: Final = Path("/proc/pressure/cpu")
"""``some … total=`` counts the microseconds in which a runnable task waited for a CPU (Linux 4.20)."""


class Contention:
    """Measures contention from its creation on."""

    def __init__(self, source: Path = PRESSURE) -> None:
        self._source = source
        self._began = time.monotonic()
        self._stalled = stalled_s(source)

    def share(self) -> float | None:
        """The share of time, from 0 to 1, in which a task waited for a CPU; None if the kernel does not report it."""
        now = stalled_s(self._source)
        spent = time.monotonic() - self._began
        if now is None or self._stalled is None or spent <= 0:
            return None
        return round(min(1.0, (now - self._stalled) / spent), 3)


def stalled_s(source: Path) -> float | None:
    """Total seconds in which a task waited for a CPU; None if the file is missing or has another format."""
    try:
        kind, *figures = source.read_text("ascii").splitlines()[0].split()
    except (OSError, IndexError, ValueError):
        return None
    total = next((figure.removeprefix("total=") for figure in figures if figure.startswith("total=")), "")
    return int(total) / 1e6 if kind == "some" and total.isdigit() else None
