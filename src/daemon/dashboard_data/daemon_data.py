"""The data of the pages about the daemon. Implements ``DaemonPort``."""

import asyncio
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ...tools import AUTO
from ...version import __version__
from ..checks.check_result import CheckResult
from ..checks.doctor import diagnose
from ..config.settings import Settings
from ..dispatch import Router
from ..observability import status_report
from ..observability.daemon_view import LiveDaemonView
from ..operator_actions import OperatorActions
from ..transports.dashboard import Viewer
from .action_audit import ActionAudit


class DaemonData:
    """Reads models, sessions, checks and settings."""

    def __init__(
        self,
        router: Router,
        view: LiveDaemonView,
        operations: OperatorActions,
        settings: Callable[[], Settings],
        actions: ActionAudit,
        browsers: Callable[[], int],
    ) -> None:
        """``browsers`` returns the number of signed-in browsers."""
        self._router = router
        self._view = view
        self._operations = operations
        self._settings = settings
        self._actions = actions
        self.browsers = browsers
        self._diagnosing = asyncio.Lock()

    def models(self) -> dict[str, Any]:
        view, limiters = self._view, self._view.limiters
        providers = []
        for row in view.providers():
            limiter = limiters.get(row["name"])
            permits = None if limiter is None else limiter.permits
            state = "off" if limiter is None else limiter.state
            counts = None if permits is None else {"limit": permits.limit, "in_use": permits.in_use}
            waiting = 0 if permits is None else permits.waiting
            abandoned = 0 if limiter is None else limiter.abandoned
            providers.append({**row, "breaker": state, "permits": counts, "waiting": waiting, "abandoned": abandoned})
        models = [
            {
                "id": model.id,
                "provider": model.provider,
                "kind": model.kind,
                "context": model.context_window,
                "inputs": model.inputs,
                "thinking": model.thinking != "none",
                "tools": model.tools,
                "price": model.price,
                "aliases": model.aliases,
                "listed": view.listed(model),
                "usable": model.provider in limiters,
                "retired": model.retired,
            }
            for model in view.catalog.models
        ]
        models.sort(key=lambda model: (not model["usable"], model["provider"], model["id"]))
        chosen = view.chosen_model
        return {"providers": providers, "models": models, "default_model": "auto" if chosen == AUTO else chosen}

    def sessions(self) -> list[dict[str, Any]]:
        running: dict[str, int] = {}
        for call in self._router.calls:
            running[call.session.id] = running.get(call.session.id, 0) + 1
        now = time.monotonic()
        rows: list[dict[str, Any]] = [
            {
                "label": session.label,
                "id": session.id,
                "principal": session.principal.name,
                "client": session.client.name,
                "version": session.client.version,
                "transport": session.transport,
                "toolset": session.toolset,
                "calls": running.get(session.id, 0),
                "connected": session.detached_at is None,
                "away_s": None if session.detached_at is None else now - session.detached_at,
                "resumable": session.resumable,
            }
            for session in self._router.sessions
        ]
        rows.sort(key=lambda row: (-row["calls"], not row["connected"], row["label"]))
        return rows

    async def health(self, viewer: Viewer) -> dict[str, Any]:
        view = self._view
        report = view.health(viewer.principal)
        checks = await view.self_check(viewer.principal)
        status = await view.status(viewer.principal, recent=0, days=0)
        usage = await asyncio.to_thread(_disk, view.store.path)
        return {
            "report": report,
            "checks": checks,
            "audit": status.get("audit"),
            "nodes": status.get("nodes", ()),
            "disk": usage,
            "limits": status_report.limits(self._router, view.limiters),
            "versions": {
                "toold": __version__,
                "Python": ".".join(map(str, sys.version_info[:3])),
                "process": str(os.getpid()),
                "simulated": "yes" if view.simulated else "no",
            },
        }

    async def doctor(self, viewer: Viewer) -> Sequence[dict[str, Any]]:
        with self._actions.recorded(viewer, "doctor"):
            async with self._diagnosing:  # one at a time, because the doctor contacts vendors
                return [_as_row(check) for check in await asyncio.to_thread(_diagnosed, self._settings())]

    async def settings(self) -> dict[str, Any]:
        return await self._operations.settings()


def _diagnosed(settings: Settings) -> list[CheckResult]:
    """Runs the checks in a separate event loop, because some of them read files or import an SDK for a second."""
    return asyncio.run(diagnose(settings))


def _as_row(check: CheckResult) -> dict[str, Any]:
    row: dict[str, Any] = msgspec.to_builtins(check)
    return row


def _disk(database: Path) -> dict[str, Any]:
    """The database's size, and the free and total space of its disk, in bytes; None if they cannot be read."""
    try:
        size = sum(path.stat().st_size for path in database.parent.glob(f"{database.name}*"))
        usage = shutil.disk_usage(database.parent)
    except OSError:
        return {"directory": str(database.parent), "size": None, "free": None, "total": None}
    return {"directory": str(database.parent), "size": size, "free": usage.free, "total": usage.total}
