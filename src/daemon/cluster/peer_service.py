"""The operations that this node performs for the other nodes of its cluster."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from ...protocol.tool_call import stored_principal
from ...store import SessionHeldError
from ...tools import CallInfo
from ..dispatch import Router
from ..observability import status_report


class PeerService:
    """Implements ``PeerOperations`` with the router."""

    def __init__(
        self,
        router: Callable[[], Router],
        connections: Callable[[], int],
        problems: Callable[[], Sequence[str]],
        metrics: Callable[[], bytes],
    ) -> None:
        self._router = router
        self._connections = connections
        self.cancel_request: Callable[[str | int, str, str], bool] = lambda *_: False
        self._problems = problems
        self._metrics = metrics

    def running_calls(self) -> Sequence[dict[str, Any]]:
        now = time.monotonic()
        return [status_report.running_row(call, now) for call in self._router().calls]

    async def find_call(self, principal: str, call_id: str) -> CallInfo:
        try:
            return await self._router().lookup.look_up_here(stored_principal(principal), call_id)
        except SessionHeldError:
            return CallInfo(id=call_id, state="unknown")

    async def cancel_call(self, principal: str | None, call_id: str) -> bool:
        try:
            if principal is None:
                return await self._router().cancel_by_operator(call_id)
            return await self._router().lookup.cancel_here(stored_principal(principal), call_id)
        except SessionHeldError:
            return False

    def metrics(self) -> str:
        return self._metrics().decode()

    def summary(self) -> dict[str, Any]:
        return {
            "connections": self._connections(),
            "calls": self._router().accepted,
            "problems": list(self._problems()),
            "at": time.time(),
        }
