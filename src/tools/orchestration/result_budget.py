"""What the results of a composing call's parts may take together: each of them is held until the answer is made."""

from typing import Final

from ...protocol.error_codes import ResultTooLargeError, ToolError
from ...protocol.tool_call import Json
from ...shaping import weight

MAX_RESULTS_BYTES: Final = 64 * 1024**2
"""Three times the largest frame; an answer is made of all of them, in memory, before it is kept as a file."""

_FULL: Final = (
    f"It has run, but the results of this call's parts are more than {MAX_RESULTS_BYTES:,} bytes together; keep what "
    "is needed of each, by options or select_fields, or have it kept by return_mode 'file'."
)


class ResultBudget:
    """What is left of it for one call."""

    def __init__(self, most: int = MAX_RESULTS_BYTES) -> None:
        self._left = most

    def take(self, value: Json) -> ToolError | None:
        """Take the room of a result; the error where there is not enough, and then nothing is taken."""
        needed = weight(value, self._left)
        if needed > self._left:
            return ResultTooLargeError(_FULL, executed="yes").to_tool_error()
        self._left -= needed
        return None
