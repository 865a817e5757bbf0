"""Searches in ended calls: the filter, and a page of results."""

import msgspec

from .store_rows import CallRow


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which ended calls a search returns. Empty or None: all."""

    principal: str | None = None
    tool: str = ""
    outcome: str = ""
    """``ok``, an error code, or ``error`` for every code."""
    session: str = ""
    """The beginning of a session's label or id."""
    text: str = ""
    """A part of the id, the error or the recorded arguments; the case of ASCII letters is ignored."""
    since: float | None = None
    until: float | None = None
    """The call started before this Unix time."""


class CallPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a search."""

    calls: list[CallRow]
    """The newest first, in the order in which they ended."""
    searched_to: float | None
    """When the oldest row that was read started; None if the search read none."""
    before: int | None
    """Where the next page begins; None if there are no more rows."""
