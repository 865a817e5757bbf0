"""The data and actions of the pages about calls. Implements ``DashboardPort``."""

import time
from collections.abc import Mapping
from typing import Any, Final

from ...protocol.error_codes import NotFoundError, ServiceUnavailableError
from ...protocol.tool_call import Principal
from ...store import CallFilter, CallPage, CallRow, StoreError, Sums
from ..dispatch import Router, RunningCall
from ..observability import status_report
from ..observability.daemon_view import LiveDaemonView
from ..observability.live_activity import SHOWN_ENDED, is_shown
from ..observability.peer_calls import PeerActivity, PeerView
from ..transports.dashboard import Viewer
from .action_audit import ActionAudit

SHOWN_RUNNING: Final = 100
"""The maximum number of running calls on the live page."""


_READ_ENDED: Final = 10 * SHOWN_ENDED
"""The number of newest rows that are searched for the calls that ended last: most rows may be child calls."""


class CallData:
    """Reads the running calls, the audit trail and the limits; cancels calls."""

    def __init__(
        self, router: Router, view: LiveDaemonView, actions: ActionAudit, peers: PeerView | None = None
    ) -> None:
        """``peers``: the other nodes, if several share the database."""
        self._peers = peers
        self._router = router
        self._view = view
        self._actions = actions
        self._audit = view.store.audit

    def now(self, sees: str | None) -> dict[str, Any]:
        now = time.monotonic()
        calls, peers = self._calls(sees), PeerActivity() if self._peers is None else self._peers.recent_calls()
        elsewhere = [_with_depth(row) for row in peers.running if sees is None or row["principal"] == sees]
        rows = [self._row(call, now) for call in _in_families(calls)[:SHOWN_RUNNING]]
        limits = status_report.limits(self._router, self._view.limiters)
        principal = Principal(sees or "", operator=sees is None)
        return {
            "running": [*rows, *elsewhere][:SHOWN_RUNNING],
            "running_total": len(calls) + len(elsewhere),
            "waiting": sum(call.public_state == "waiting" for call in calls)
            + sum(row["state"] == "waiting" for row in elsewhere),
            "connections": self._view.connections() + peers.connections if sees is None else None,
            "node": None if self._peers is None else self._peers.own_name,
            "unanswered": peers.unanswered,
            "spent": _spent(self._view.budget.state()["spent"]) if sees is None else None,
            "limits": [
                {"name": "all calls", **limits["running"]},
                *({"name": name, **permits} for name, permits in limits["providers"].items()),
            ],
            # Only operators see which source fails; for others, several sources have the same text.
            "problems": list(dict.fromkeys(self._view.health(principal)["problems"])),
        }

    async def recent(self, sees: str | None) -> list[dict[str, Any]]:
        try:
            rows = await (
                self._audit.recent(_READ_ENDED) if sees is None else self._audit.ended_calls(sees, _READ_ENDED)
            )
        except StoreError:  # the page shows this as a problem of the daemon
            return []
        return [
            {
                "id": row.id,
                "tool": row.tool,
                "outcome": row.outcome,
                "message": row.message,
                "session": row.session_label,
                "principal": row.principal,
                "latency_ms": row.latency_ms,
                "ended_at": row.started_at + row.latency_ms / 1000,
            }
            for row in [row for row in rows if is_shown(row.id, row.outcome)][:SHOWN_ENDED]
        ]

    def running(self, call_id: str, sees: str | None) -> list[dict[str, Any]]:
        now, below = time.monotonic(), f"{call_id}/"
        family = [call for call in self._calls(sees) if call.id == call_id or call.id.startswith(below)]
        rows = [self._row(call, now) for call in _in_families(family)]
        if not rows and self._peers is not None:
            everywhere = self._peers.recent_calls().running
            seen = [row for row in everywhere if sees in {None, row["principal"]}]
            rows = [_with_depth(row) for row in seen if row["id"] == call_id or row["id"].startswith(below)]
        return rows if rows and rows[0]["id"] == call_id else []

    async def is_paused(self, call_id: str, viewer: Viewer) -> bool:
        paused = await self._router.paused.paused_calls(None if viewer.operator else viewer.principal)
        return any(call.call_id == call_id for call in paused)

    async def search(self, wanted: CallFilter, before: int | None, limit: int) -> CallPage:
        try:
            return await self._audit.search(wanted, before, limit)
        except StoreError as error:
            raise ServiceUnavailableError(f"The audit cannot be read ({error.reason}); try again later.") from None

    async def call_tree(self, call_id: str, sees: str | None) -> list[CallRow]:
        try:
            return await self._audit.call_tree(call_id, sees)
        except StoreError as error:
            raise ServiceUnavailableError(f"The audit cannot be read ({error.reason}); try again later.") from None

    def is_agent(self, tool: str) -> bool:
        registry = self._router.catalog.registry
        return tool in registry and registry.get(tool).agent

    def tool_names(self, viewer: Viewer) -> list[str]:
        catalog = self._router.catalog
        if viewer.operator and viewer.access.toolsets is None:
            return sorted(tool.name for tool in catalog.registry.tools)
        usable = viewer.access.usable_toolsets(catalog.names)
        return sorted({name for toolset in usable for name in catalog.view(toolset).tools})

    async def tool_usage(self, sees: str | None) -> Mapping[str, Sums]:
        try:
            return (await self._audit.totals(sees)).by_tool
        except StoreError as error:
            raise ServiceUnavailableError(f"The audit cannot be read ({error.reason}); try again later.") from None

    async def cancel(self, viewer: Viewer, call_id: str) -> None:
        """Cancel a running call that the viewer sees.

        Raises:
            NotFoundError: it does not run, or belongs to another principal.
        """
        with self._actions.recorded(viewer, "cancel", call_id=call_id):
            if not self.running(call_id, viewer.sees) or not (
                await self._router.cancel_by_operator(call_id) or await self._cancel_elsewhere(call_id)
            ):
                raise NotFoundError("This call is not running; it may have ended.")

    async def _cancel_elsewhere(self, call_id: str) -> bool:
        return self._peers is not None and await self._peers.cancel(None, None, call_id)

    def _row(self, call: RunningCall, now: float) -> dict[str, Any]:
        row = _with_depth(status_report.running_row(call, now))
        return row if self._peers is None else {**row, "node": self._peers.own_name}

    def _calls(self, sees: str | None) -> list[RunningCall]:
        return [call for call in self._router.calls if sees is None or call.session.principal.name == sees]


def _spent(amounts: Mapping[str, float]) -> dict[str, float]:
    """The amounts without zeros: simulated calls cost nothing."""
    return {currency: amount for currency, amount in amounts.items() if amount}


def _with_depth(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "depth": row["id"].count("/")}


def _in_families(calls: list[RunningCall]) -> list[RunningCall]:
    """The calls with each child below its parent; families in the order of their first call."""
    order = {call.id: index for index, call in enumerate(calls)}

    def key(call: RunningCall) -> list[tuple[int, str]]:
        parts = call.id.split("/")
        ids = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return [(order.get(call_id, len(order)), call_id) for call_id in ids]

    return sorted(calls, key=key)
