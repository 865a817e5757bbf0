"""What the dashboard shows and does, from the daemon's parts. Implements ``DashboardPort``."""

import secrets
import time
from collections.abc import Mapping
from typing import Any, Final

import structlog

from ..dashboard import AssetError, Pages, load_assets
from ..protocol.error_codes import CallError, NotFoundError, ServiceUnavailableError
from ..protocol.tool_call import Principal
from ..store import CallFilter, CallPage, CallRow, StoreError, Sums
from ..version import __version__
from .access import Authenticator
from .config.settings import Settings
from .dispatch import Router, RunningCall
from .observability import status_report
from .observability.call_recorder import CallRecorder
from .observability.daemon_view import LiveDaemonView
from .persistence.state_directory import StateDirectory
from .transports.dashboard import SESSIONS_FILE, BrowserSessions, DashboardServer, LiveFeed, Viewer
from .transports.http_intake import HttpIntake

SHOWN_RUNNING: Final = 100
"""The rows of running calls on the live page."""
_TRANSPORT: Final = "dashboard"

_log = structlog.get_logger(__name__)


class DashboardData:
    """Reads the running calls, the audit trail and the limits; cancels calls."""

    def __init__(self, router: Router, view: LiveDaemonView) -> None:
        self._router = router
        self._view = view
        self._audit = view.store.audit

    def now(self, sees: str | None) -> dict[str, Any]:
        now = time.monotonic()
        calls = self._calls(sees)
        limits = status_report.limits(self._router, self._view.limiters)
        principal = Principal(sees or "", operator=sees is None)
        return {
            "running": [_row(call, now) for call in _in_families(calls)[:SHOWN_RUNNING]],
            "running_total": len(calls),
            "limits": [
                {"name": "all calls", **limits["running"]},
                *({"name": name, **permits} for name, permits in limits["providers"].items()),
            ],
            "problems": self._view.health(principal)["problems"],
        }

    def running(self, call_id: str, sees: str | None) -> dict[str, Any] | None:
        now = time.monotonic()
        return next((_row(call, now) for call in self._calls(sees) if call.id == call_id), None)

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
            NotFoundError: it does not run, or is another principal's.
        """
        started = time.time()
        outcome = "ok"
        try:
            if self.running(call_id, viewer.sees) is None or not await self._router.cancel_by_operator(call_id):
                raise NotFoundError("This call is not running; it may have ended.")
        except CallError as error:
            outcome = error.code
            raise
        finally:
            self._record(viewer, "dashboard:cancel", {"call_id": call_id}, outcome, started)

    def _calls(self, sees: str | None) -> list[RunningCall]:
        return [call for call in self._router.calls if sees is None or call.session.principal.name == sees]

    def _record(self, viewer: Viewer, action: str, arguments: dict[str, Any], outcome: str, started: float) -> None:
        """The audit row of an action."""
        action_id = f"ui-{secrets.token_hex(8)}"
        self._audit.record(
            CallRow(
                id=action_id,
                started_at=started,
                transport=_TRANSPORT,
                principal=viewer.name,
                session_id=_TRANSPORT,
                session_label=_TRANSPORT,
                client=_TRANSPORT,
                request_id=f'"{action_id}"',
                tool=action,
                outcome=outcome,
                arguments=arguments,
                latency_ms=round((time.time() - started) * 1000, 3),
            )
        )


def open_dashboard(
    settings: Settings,
    state: StateDirectory,
    router: Router,
    view: LiveDaemonView,
    recorder: CallRecorder,
    intake: HttpIntake,
    authenticator: Authenticator,
) -> "Dashboard | None":
    """The dashboard; None if it is off, or if this installation lacks its assets."""
    if not settings.ui:
        return None
    try:
        assets = load_assets()
    except AssetError as error:
        _log.warning("the dashboard is off", why=str(error))
        return None
    sessions = BrowserSessions(state.path / SESSIONS_FILE)

    def render(viewer: Viewer) -> str:
        return server.live_part(viewer, recorder.activity.ended_calls(viewer.sees))

    def is_valid(viewer: Viewer) -> bool:
        return server.viewer_is_valid(viewer)

    feed = LiveFeed(recorder.activity, render, is_valid)
    server = DashboardServer(
        Pages(assets, version=__version__),
        assets,
        DashboardData(router, view),
        router,
        feed,
        sessions,
        intake,
        authenticate=authenticator,
        by_hash=authenticator.by_hash,
        origins=settings.allowed_origins,
        has_auth=settings.auth,
    )
    return Dashboard(server, feed, sessions, authenticator)


class Dashboard:
    """The parts of the dashboard that the daemon uses."""

    def __init__(
        self, server: DashboardServer, feed: LiveFeed, sessions: BrowserSessions, authenticator: Authenticator
    ) -> None:
        self.server = server
        self._feed = feed
        self._sessions = sessions
        self._authenticator = authenticator

    def sign_in_link(self) -> str:
        """The path of a link that signs one browser in with the daemon's token."""
        return f"/ui/open?code={self._sessions.create_link(self._authenticator.own_hash)}"

    def close_streams(self) -> None:
        """End the live pages, which would delay the daemon's stop."""
        self._feed.close()


def _row(call: RunningCall, now: float) -> dict[str, Any]:
    return {**status_report.running_row(call, now), "depth": call.id.count("/")}


def _in_families(calls: list[RunningCall]) -> list[RunningCall]:
    """The calls with each child below its parent; families in the order of their first call."""
    order = {call.id: index for index, call in enumerate(calls)}

    def key(call: RunningCall) -> list[tuple[int, str]]:
        parts = call.id.split("/")
        ids = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        return [(order.get(call_id, len(order)), call_id) for call_id in ids]

    return sorted(calls, key=key)
