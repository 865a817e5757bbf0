"""What the dashboard shows and does, as its transport asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ....protocol.authorization import Authorization
from ....protocol.tool_call import Principal
from ....store import CallFilter, CallPage, CallRow, Sums


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the dashboard."""

    access: Authorization
    secret: str
    """Of its browser session."""

    @property
    def principal(self) -> Principal:
        return self.access.principal

    @property
    def name(self) -> str:
        return self.principal.name

    @property
    def operator(self) -> bool:
        """It sees everything; any other viewer sees its own calls."""
        return self.principal.operator

    @property
    def sees(self) -> str | None:
        """The principal whose calls it sees; None: all."""
        return None if self.operator else self.name


class DashboardPort(Protocol):
    """Each method raises a ``CallError`` if it fails. ``sees`` is ``Viewer.sees``."""

    def now(self, sees: str | None) -> dict[str, Any]:
        """``running``: the rows of running calls, with their ``depth``; ``running_total``; ``limits``; ``problems``."""

    def running(self, call_id: str, sees: str | None) -> dict[str, Any] | None:
        """The row of a running call."""

    async def search(self, wanted: CallFilter, before: int | None, limit: int) -> CallPage: ...

    async def call_tree(self, call_id: str, sees: str | None) -> list[CallRow]:
        """An ended call and its ended descendants, in the order in which they started; empty if there is none."""

    def tool_names(self, viewer: Viewer) -> list[str]:
        """The sorted names of the tools that the viewer may use; of all tools for an operator without toolsets."""

    async def tool_usage(self, sees: str | None) -> Mapping[str, Sums]:
        """The sums over all recorded calls, by tool."""

    async def cancel(self, viewer: Viewer, call_id: str) -> None: ...
