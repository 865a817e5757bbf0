"""Decides whether a child that ran in an earlier run is replayed, runs again, or must not run (decision 33). Pure."""

from typing import Any

from ...protocol.arguments_digest import is_digest_of
from ...protocol.error_codes import OutcomeUnknownError, RequestIdConflictError, ResultExpiredError
from ...protocol.tool_call import ToolResult
from ...store import StoredCall
from ...tools import Tool
from . import call_outcome


def earlier_result(
    stored: StoredCall,
    result: ToolResult | None,
    tool: Tool,
    arguments: dict[str, Any],
    *,
    journalled: bool = False,
) -> ToolResult | None:
    """The answer of a child that ran in an earlier run; None if it must run again.

    A failed call is replayed even if its arguments differ now: the resuming call may have corrected them. A call whose
    parts did not all succeed runs again, whether it ended with its report or was interrupted, and resumes with its own
    children. If the call is ``journalled`` at its parent's request, it never runs again once it has ended.

    Raises:
        RequestIdConflictError: it succeeded with another tool or other arguments.
        OutcomeUnknownError: it was interrupted and may have taken effect.
        ResultExpiredError: it ran, and its result has expired.
    """
    if result is not None:
        parts = result.metadata.parts
        if parts is not None and parts.outcome != "succeeded" and not journalled:
            return None
        if result.ok and (stored.tool != tool.name or not is_digest_of(stored.arguments_hash, arguments)):
            raise RequestIdConflictError(
                f"The earlier run called {stored.tool} under this name with other arguments; start a new run to change "
                "a call that succeeded."
            )
        return call_outcome.replayed(result)
    # An orchestration call resumes with its own children.
    if tool.orchestration or (tool.repeatable and not (journalled and stored.state == "expired")):
        return None
    if stored.state == "interrupted":
        raise OutcomeUnknownError.content_free(
            "The earlier run was interrupted during this call; check whether it took effect."
        )
    raise ResultExpiredError
