"""What a call reports, as ``notifications/progress`` has it. Pure."""

import math
from typing import Any

from ..tool_call import Progress


class ProgressCounter:
    """Progress has to grow with every notification, whatever the tool counts."""

    def __init__(self) -> None:
        self._last = -1.0
        self._tool_counts = False

    def count(self, progress: Progress, token: str | int) -> dict[str, Any]:
        """The parameters of the next ``notifications/progress``.

        Where the tool counts nothing, its reports are counted. Where it does, its number is taken; one that has not
        grown becomes the next that a double can hold.
        """
        self._tool_counts = self._tool_counts or progress.done is not None
        if not self._tool_counts:
            self._last = max(self._last, 0.0) + 1
        elif progress.done is not None and progress.done > self._last:
            self._last = progress.done
        else:
            self._last = math.nextafter(self._last, math.inf)
        params: dict[str, Any] = {"progressToken": token, "progress": self._last, "message": progress.message}
        if progress.total is not None:
            params["total"] = progress.total
        return params
