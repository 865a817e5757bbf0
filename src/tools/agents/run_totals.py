"""The turns and tool calls of several roles, in the form of an agent's answer. Pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

MAX_LISTED_CALLS: Final = 200
"""The maximum number of calls that an answer lists. Later calls are only counted."""


class CallReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entry in an agent's answer: a tool call, or a turn that a model other than the role's answered."""

    role: str
    tool: str
    id: str
    """The child call's id below the call whose answer lists it, such as ``writer/t1.0``."""
    outcome: str
    """``ok`` or the error's code."""
    model: str = ""
    """The model that answered the turn."""
    model_choice_reason: str = ""

    def of_child(self, name: str) -> "CallReport":
        """The report for the answer of the parent of the child call ``name``."""
        return msgspec.structs.replace(self, id=f"{name}/{self.id}")


class RunTotals(NamedTuple):
    """The turns and calls of one role or of several."""

    turns: int = 0
    calls: tuple[CallReport, ...] = ()
    """The first ``MAX_LISTED_CALLS`` calls."""
    unlisted_calls: int = 0
    summaries: int = 0
    """The number of summaries of roles' messages."""
    warnings: tuple[str, ...] = ()

    def with_later(self, later: Iterable["RunTotals"]) -> "RunTotals":
        """The sum of these totals and ``later`` ones, with the calls in this order."""
        parts = (self, *later)
        calls = [call for part in parts for call in part.calls]
        return RunTotals(
            sum(part.turns for part in parts),
            tuple(calls[:MAX_LISTED_CALLS]),
            sum(part.unlisted_calls for part in parts) + max(0, len(calls) - MAX_LISTED_CALLS),
            sum(part.summaries for part in parts),
            tuple(dict.fromkeys(warning for part in parts for warning in part.warnings)),
        )
