"""What a composing call that is cancelled has to tell: what was done before, as at its deadline."""

from collections.abc import Mapping
from typing import Any, Final

from ...protocol.error_codes import CallCancelledError
from ...protocol.tool_call import Json
from ...shaping import weight

MOST_BYTES: Final = 1024**2
"""Of what was done, in an error: a caller that cancels wants no more."""
_SHARE: Final = 8
"""It has at most this part of an answer, or the error itself might have no room in a frame."""

_TOLD: Final = "details.so_far has what was done"


def cut_off(answer: Mapping[str, Json], answer_bytes: int, run_id: str | None = None) -> CallCancelledError:
    """The error of a call that was told to end, with its ``answer`` up to then. Where that is large beside
    ``max_answer_bytes`` it goes without results, then without errors, and then without its steps: what calls
    that it made came to is kept under their own ids.
    """
    told, so_far = _TOLD, dict(answer)
    most = min(MOST_BYTES, answer_bytes // _SHARE)
    for part in ("result", "results", "errors", "error", "step_results"):
        if weight(so_far, most) <= most:
            break
        told = f"{_TOLD}, but for what is too large for an error"
        so_far = _without(so_far, part)
    details: dict[str, Json] = {"so_far": so_far}
    if run_id is not None:
        told = f"{told}; resume with details.run_id goes on"
        details["run_id"] = run_id
    return CallCancelledError(f"{told}.", details=details)


def _without(answer: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The answer without one of its parts, and without that of its steps."""
    left = {name: value for name, value in answer.items() if name != part}
    if isinstance(steps := left.get("step_results"), dict):
        left["step_results"] = {name: _without(step, part) for name, step in steps.items()}
    return left
